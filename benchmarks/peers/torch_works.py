"""torchdiffeq, torchdyn and torchode on a work; see serve.py. Entries: LIBRARY, or LIBRARY-VARIANT with `adjoint`, `newest` (the newest
torch), `forward` (the same, with the divergence by forward mode) or, for torchode, `jit`."""
import sys
import types

from torch_common import ACTIVATION, dtype, entry, nn, run, torch, work

SOLVER = dict(rtol=work["rtol"], atol=work["atol"])
library, _, variant = entry.partition("-")


def scriptable(network):
    """The same layers as plain modules, on the same parameters, for torch.jit. It cannot count its calls."""
    class Chain(nn.Module):
        def __init__(self):
            super().__init__()
            layers = []
            for weight, bias in zip(list(network.values)[::2], list(network.values)[1::2]):
                layer = nn.Linear(weight.shape[1], weight.shape[0])
                layer.weight, layer.bias = weight, bias
                layers += [nn.Tanh() if ACTIVATION is torch.tanh else nn.Softplus(), layer]
            self.layers = nn.Sequential(*layers[1:])

        def forward(self, t, y):
            return self.layers(y)

    return Chain()


def import_torchdyn():
    # torchdyn derives its modules from Lightning's; nothing else of Lightning is used here, and not every release of it imports under
    # every Python.
    sys.modules["pytorch_lightning"] = types.SimpleNamespace(LightningModule=nn.Module)
    import torchdyn
    from torchdyn.core import NeuralODE
    if work["first_step"]:  # it has no option for that
        sys.modules["torchdyn.numerics.odeint"].init_step = lambda f, f0, x0, t0, *_: torch.tensor(work["first_step"], dtype=t0.dtype)
    return torchdyn, NeuralODE


def solver_for(state):
    depths = torch.linspace(0, work["last"], work["points"], dtype=dtype)
    if library == "torchdiffeq":
        import torchdiffeq
        method = torchdiffeq.odeint_adjoint if variant == "adjoint" else torchdiffeq.odeint
        options = {"options": {"first_step": work["first_step"]}} if work["first_step"] else {}
        return lambda z0: method(state, z0, depths, method="dopri5", **SOLVER, **options), f"torchdiffeq {torchdiffeq.__version__}"
    if library == "torchdyn":
        torchdyn, NeuralODE = import_torchdyn()
        sensitivity = "adjoint" if variant == "adjoint" else "autograd"
        ode = NeuralODE(state, solver="dopri5", sensitivity=sensitivity, return_t_eval=False,
                        rtol_adjoint=work["rtol"], atol_adjoint=work["atol"], **SOLVER)
        return lambda z0: ode(z0, depths), f"torchdyn {torchdyn.__version__}"
    import torchode
    if variant == "jit" and work["field"] == "mlp" and work["loss"] in ("head", "points", "none"):
        state = scriptable(state.network)
    term = torchode.ODETerm(state)
    adjoint = torchode.AutoDiffAdjoint(torchode.Dopri5(term), torchode.IntegralController(term=term, **SOLVER))
    if variant == "jit":
        adjoint = torch.jit.script(adjoint)

    def solve(z0):
        first = torch.full((z0.shape[0],), work["first_step"], dtype=dtype) if work["first_step"] else None
        solution = adjoint.solve(torchode.InitialValueProblem(y0=z0, t_eval=depths.expand(z0.shape[0], -1)), dt0=first)
        if variant == "jit":
            solve.evaluations = int(solution.stats["n_f_evals"].max())
        return solution.ys.transpose(0, 1)

    return solve, f"torchode {torchode.__version__}"


run(solver_for, forward_mode=variant == "forward")
