"""torchdiffeq, torchdyn and torchode on a work; see serve.py. Entries: torchdiffeq, torchdiffeq-adjoint, torchdyn, torchdyn-adjoint,
torchode, torchode-jit."""
import math
import sys
import types

from serve import LEARNING_RATE, arguments, serve

work, entry, threads = arguments()

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

torch.set_num_threads(threads)
dtype = getattr(torch, work["precision"])
SOLVER = dict(rtol=work["rtol"], atol=work["atol"])


def tensor(named):
    return torch.tensor(named["data"], dtype=dtype).reshape(named["shape"])


class Network(nn.Module):
    """The field's layers on the work's weights; `evaluations` counts calls."""

    def __init__(self, parameters):
        super().__init__()
        self.values = nn.ParameterList([nn.Parameter(tensor(each)) for each in parameters])
        self.act = {"tanh": torch.tanh, "softplus": functional.softplus}[work["activation"]]
        self.evaluations = 0

    def rate(self, s, z):
        self.evaluations += 1
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
            h = functional.linear(self.act(h), p[n], p[n + 1])
        return h


class ImageNetwork(nn.Module):
    """Instance norm, conv 3x3, softplus, conv 3x3, softplus, instance norm, conv 1x1."""

    def __init__(self, parameters):
        super().__init__()
        self.values = nn.ParameterList([nn.Parameter(tensor(each)) for each in parameters])
        self.evaluations = 0

    def rate(self, s, z):
        self.evaluations += 1
        p = list(self.values)
        h = functional.instance_norm(z, weight=p[0], bias=p[1])
        h = functional.softplus(functional.conv2d(h, p[2], padding=1))
        h = functional.softplus(functional.conv2d(h, p[3], padding=1))
        h = functional.instance_norm(h, weight=p[4], bias=p[5])
        return functional.conv2d(h, p[6], p[7])


class State(nn.Module):
    """The rate of what is integrated: z, or [z, running loss or divergence]."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, t, x, args=None):  # torchdyn wants these names
        s, state = t, x
        if work["loss"] not in ("tracking", "likelihood"):
            return self.network.rate(s, state)
        z = state[:, :2]
        if work["loss"] == "tracking":
            rate = self.network.rate(s, z)
            angle = 2 * math.pi * torch.as_tensor(s, dtype=dtype)
            target = torch.stack([torch.cos(angle), torch.sin(angle)], -1)
            return torch.cat([rate, ((z - target) ** 2).sum(1, keepdim=True)], 1)
        with torch.enable_grad():
            z = z.requires_grad_() if not z.requires_grad else z
            rate = self.network.rate(s, z)
            trace = sum(torch.autograd.grad(rate[:, k].sum(), z, create_graph=True)[0][:, k] for k in range(2))
        return torch.cat([rate, trace.unsqueeze(1)], 1)


def scriptable(network):
    """The same layers as plain modules, on the same parameters, for torch.jit. It cannot count its calls."""
    class Chain(nn.Module):
        def __init__(self):
            super().__init__()
            layers = []
            for weight, bias in zip(list(network.values)[::2], list(network.values)[1::2]):
                layer = nn.Linear(weight.shape[1], weight.shape[0])
                layer.weight, layer.bias = weight, bias
                layers += [nn.Tanh() if work["activation"] == "tanh" else nn.Softplus(), layer]
            self.layers = nn.Sequential(*layers[1:])

        def forward(self, t, y):
            return self.layers(y)

    return Chain()


def solver_for(state):
    """solve(z0) -> states at the work's depths, by the entry's library."""
    depths = torch.linspace(0, work["last"], work["points"], dtype=dtype)
    library, _, variant = entry.partition("-")
    if library == "torchdiffeq":
        import torchdiffeq
        method = torchdiffeq.odeint_adjoint if variant == "adjoint" else torchdiffeq.odeint
        return lambda z0: method(state, z0, depths, method="dopri5", **SOLVER), torchdiffeq.__version__
    if library == "torchdyn":
        # torchdyn derives its modules from Lightning's; nothing else of Lightning is used here, and its releases for this torch
        # do not import under Python 3.11.
        sys.modules["pytorch_lightning"] = types.SimpleNamespace(LightningModule=nn.Module)
        import torchdyn
        from torchdyn.core import NeuralODE
        sensitivity = "adjoint" if variant == "adjoint" else "autograd"
        ode = NeuralODE(state, solver="dopri5", sensitivity=sensitivity, return_t_eval=False,
                        rtol_adjoint=work["rtol"], atol_adjoint=work["atol"], **SOLVER)
        return lambda z0: ode(z0, depths), torchdyn.__version__
    import torchode
    if variant == "jit" and work["field"] == "mlp" and work["loss"] in ("head", "points", "none"):
        state = scriptable(state.network)
    term = torchode.ODETerm(state)
    adjoint = torchode.AutoDiffAdjoint(torchode.Dopri5(term), torchode.IntegralController(term=term, **SOLVER))
    if variant == "jit":
        adjoint = torch.jit.script(adjoint)

    def solve(z0):
        times = depths.expand(z0.shape[0], -1)
        solution = adjoint.solve(torchode.InitialValueProblem(y0=z0, t_eval=times))
        if variant == "jit":
            solve.evaluations = int(solution.stats["n_f_evals"].max())
        return solution.ys.transpose(0, 1)

    return solve, torchode.__version__


def main():
    parameters = list(work["parameters"])
    x, head = tensor(work["x"]), None
    y = tensor(work["y"]) if "y" in work else None
    if work["field"] == "image":
        h_x, network = nn.Parameter(tensor(parameters[0])), ImageNetwork(parameters[1:9])
        head = [nn.Parameter(tensor(each)) for each in parameters[9:]]
    else:
        if work["loss"] == "head":
            head = [nn.Parameter(tensor(each)) for each in parameters[-2:]]
            parameters = parameters[:-2]
        network = Network(parameters)
    solve, version = solver_for(State(network))

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

    counted = lambda: getattr(solve, "evaluations", network.evaluations)
    if not work["trains"]:
        def iterate():
            network.evaluations = 0
            with torch.no_grad():
                solve(x)
            return counted(), 0.0
    else:
        trained = list(network.parameters()) + (head or []) + ([h_x] if work["field"] == "image" else [])
        optimizer = torch.optim.Adam(trained, lr=LEARNING_RATE)

        def iterate():
            network.evaluations = 0
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of()
            forward = counted()
            loss.backward()
            optimizer.step()
            return forward, loss.item()

    serve(iterate, version)


main()
