"""What programs on torch share: the works' networks, states, losses and training. A program defines `solver_for(state, work, entry)`,
which gives `solve(z0)` -> states at the work's depths, and the versions to name, and calls `run(solver_for)`."""
import math
import platform

from serve import LEARNING_RATE, arguments, serve

work, entry, threads = arguments()

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

torch.set_num_threads(threads)
dtype = getattr(torch, work["precision"])
ACTIVATION, SLOPE = {"tanh": (torch.tanh, lambda h: 1 - torch.tanh(h) ** 2), "softplus": (functional.softplus, torch.sigmoid)}[work["activation"]]
HAS_DIVERGENCE = work["loss"] == "likelihood"


def tensor(named):
    return torch.tensor(named["data"], dtype=dtype).reshape(named["shape"])


class Network(nn.Module):
    """The field's layers on the work's weights."""

    def __init__(self, parameters):
        super().__init__()
        self.values = nn.ParameterList([nn.Parameter(tensor(each)) for each in parameters])

    def rate(self, s, z):
        p = list(self.values)
        weight, bias = p[0], p[1]
        if work["field"] == "galerkin":
            s = torch.as_tensor(s, dtype=dtype)
            psi = torch.stack([torch.ones_like(s), torch.cos(2 * s), torch.zeros_like(s), torch.sin(2 * s)])
            if s.dim() == 0:
                h = functional.linear(z, torch.einsum("j,joi->oi", psi, weight), psi @ bias)
            else:  # torchode: a depth for each sample, so that the layers of the basis are mixed and not their weights
                parts = functional.linear(z, weight.flatten(0, 1), bias.flatten()).unflatten(1, weight.shape[:2])
                h = (psi.T.unsqueeze(2) * parts).sum(1)
        else:
            h = functional.linear(z, weight, bias)
        for n in range(2, len(p), 2):
            h = functional.linear(ACTIVATION(h), p[n], p[n + 1])
        return h

    def rate_and_divergence(self, z):
        """Of an MLP, by forward mode: the derivative along each input goes through the layers beside the value."""
        p = list(self.values)
        h = functional.linear(z, p[0], p[1])
        along = p[0].T.unsqueeze(1)  # (inputs, 1, width): the same for all samples
        for n in range(2, len(p), 2):
            along = functional.linear(SLOPE(h) * along, p[n])
            h = functional.linear(ACTIVATION(h), p[n], p[n + 1])
        return h, sum(along[k, :, k] for k in range(z.shape[1]))


class ImageNetwork(nn.Module):
    """Instance norm, conv 3x3, softplus, conv 3x3, softplus, instance norm, conv 1x1. Where `groups` is chosen, the norm is a group norm
    with a group for each channel: the same numbers, several times faster."""

    def __init__(self, parameters, groups=False):
        super().__init__()
        self.values = nn.ParameterList([nn.Parameter(tensor(each)) for each in parameters])
        self.norm = ((lambda h, w, b: functional.group_norm(h, h.shape[1], w, b)) if groups
                     else (lambda h, w, b: functional.instance_norm(h, weight=w, bias=b)))

    def rate(self, s, z):
        p = list(self.values)
        h = self.norm(z, p[0], p[1])
        h = functional.softplus(functional.conv2d(h, p[2], padding=1))
        h = functional.softplus(functional.conv2d(h, p[3], padding=1))
        h = self.norm(h, p[4], p[5])
        return functional.conv2d(h, p[6], p[7])


class State(nn.Module):
    """The rate of what is integrated: z, or [z, running loss or divergence]. `evaluations` counts calls if `counted`: a compiled step
    must not change a number of Python's."""

    def __init__(self, network, forward_mode=False, counted=True):
        super().__init__()
        self.network, self.forward_mode, self.counted, self.evaluations = network, forward_mode, counted, 0

    def forward(self, t, x, args=None):  # torchdyn wants these names
        if self.counted:
            self.evaluations += 1
        s, state = t, x
        if work["loss"] not in ("tracking", "likelihood"):
            return self.network.rate(s, state)
        z = state[:, :2]
        if work["loss"] == "tracking":
            rate = self.network.rate(s, z)
            angle = 2 * math.pi * torch.as_tensor(s, dtype=dtype)
            target = torch.stack([torch.cos(angle), torch.sin(angle)], -1)
            return torch.cat([rate, ((z - target) ** 2).sum(1, keepdim=True)], 1)
        if self.forward_mode:
            rate, trace = self.network.rate_and_divergence(z)
            return torch.cat([rate, trace.unsqueeze(1)], 1)
        with torch.enable_grad():
            z = z.requires_grad_() if not z.requires_grad else z
            rate = self.network.rate(s, z)
            trace = sum(torch.autograd.grad(rate[:, k].sum(), z, create_graph=True)[0][:, k] for k in range(2))
        return torch.cat([rate, trace.unsqueeze(1)], 1)


def adam(parameters):
    """Adam as one kernel where this torch has it on CPUs."""
    try:
        return torch.optim.Adam(parameters, lr=LEARNING_RATE, fused=True)
    except (RuntimeError, TypeError):
        return torch.optim.Adam(parameters, lr=LEARNING_RATE)


def run(solver_for, **options):
    """Serves the work with the states that `solver_for` finds; `options` are those of State and, `groups`, of ImageNetwork."""
    parameters = list(work["parameters"])
    x, head = tensor(work["x"]), None
    y = tensor(work["y"]) if "y" in work else None
    groups = options.pop("groups", False)
    if work["field"] == "image":
        h_x, network = nn.Parameter(tensor(parameters[0])), ImageNetwork(parameters[1:9], groups)
        head = [nn.Parameter(tensor(each)) for each in parameters[9:]]
    else:
        if work["loss"] == "head":
            head = [nn.Parameter(tensor(each)) for each in parameters[-2:]]
            parameters = parameters[:-2]
        network = Network(parameters)
    state = State(network, **options)
    solve, version = solver_for(state)

    def loss_of():
        if work["loss"] == "image":
            h = functional.conv2d(solve(functional.conv2d(x, h_x, padding=1))[-1], head[0], head[1])
            h = functional.adaptive_avg_pool2d(h, 4).flatten(1)
            return functional.cross_entropy(functional.linear(h, head[2], head[3]), y.long())
        if work["loss"] == "head":
            return functional.mse_loss(functional.linear(solve(x)[-1], *head), y)
        if work["loss"] == "points":
            states = solve(x)
            return functional.mse_loss(states, y.reshape(states.shape))
        end = solve(torch.cat([x, torch.zeros(len(x), 1, dtype=dtype)], 1))[-1]
        if work["loss"] == "tracking":
            return end[:, 2].mean()
        log_base = -0.5 * (end[:, :2] ** 2).sum(1) - math.log(2 * math.pi)
        return -(log_base + end[:, 2]).mean()

    counted = lambda: getattr(solve, "evaluations", state.evaluations)
    if not work["trains"]:
        def iterate():
            state.evaluations = 0
            with torch.no_grad():
                solve(x)
            return counted(), 0.0
    else:
        trained = list(network.parameters()) + (head or []) + ([h_x] if work["field"] == "image" else [])
        optimizer = adam(trained)

        def iterate():
            state.evaluations = 0
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of()
            forward = counted()
            loss.backward()
            optimizer.step()
            return forward, loss.item()

    serve(iterate, f"{version}, torch {torch.__version__}, Python {platform.python_version()}")
