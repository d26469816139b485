"""What an expert would write for the work in torch; see serve.py. Dopri5 by hand: all stages, the new state and the error are one graph
of torch.compile, the loop is Python, the step size a number. No heuristic chooses the first step: without a given one, the one that
needs the fewest evaluations is found while warming up. Entries: torch-expert, torch-expert-eager (not compiled)."""
from torch_common import HAS_DIVERGENCE, dtype, entry, nn, run, torch, work

COMPILED = entry == "torch-expert"
C = [0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1]
A = [[], [1 / 5], [3 / 40, 9 / 40], [44 / 45, -56 / 15, 32 / 9], [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
     [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656], [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]]
ERROR = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40]


def dense_weights(t):
    """b_1(t) .. b_7(t) of the interpolant of order 4 (Hairer, Norsett, Wanner I, II.6)."""
    cubic, bump = t * t * (3 - 2 * t), (t * (t - 1)) ** 2
    b = A[6]
    return [cubic * b[0] + t * (t - 1) ** 2 - bump * 5 * (2558722523 - 31403016 * t) / 11282082432, 0 * t,
            cubic * b[2] + bump * 100 * (882725551 - 15701508 * t) / 32700410799,
            cubic * b[3] - bump * 25 * (443332067 - 31403016 * t) / 1880347072,
            cubic * b[4] + bump * 32805 * (23143187 - 3489224 * t) / 199316789632,
            cubic * b[5] - bump * 55 * (29972135 - 7076736 * t) / 822651844,
            t * t * (t - 1) + bump * 10 * (7414447 - 829305 * t) / 29380423]


def combined(weights, rates):
    return sum(weight * rate for weight, rate in zip(weights, rates) if weight)


class Step(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, z, k, s, h):
        rates = [k]
        for row, c in zip(A[1:], C[1:]):
            end = z + h * combined(row, rates)
            rates.append(self.rate(s + c * h, end))
        error = h * combined(ERROR, [rate.detach() for rate in rates])
        scale = work["atol"] + work["rtol"] * torch.maximum(z.detach().abs(), end.detach().abs())
        kept = torch.stack(rates) if work["points"] > 2 else None
        return end, rates[-1], ((error / scale) ** 2).mean().sqrt(), kept


class Dopri5:
    """solve(z0) -> states at the work's depths, in a loop of Python."""

    def __init__(self, rate):
        self.step, self.start = Step(rate), rate
        if COMPILED:
            self.step = torch.compile(self.step, fullgraph=True, dynamic=False)
            self.start = torch.compile(rate, fullgraph=True, dynamic=False)
        self.depths = torch.linspace(0, work["last"], work["points"], dtype=torch.float64).tolist()
        self.first_step, self.evaluations = work["first_step"], 0

    def __call__(self, z0):
        if self.first_step is None:
            with torch.no_grad():
                tried = {h: self.solve(z0, h) and self.evaluations for h in [work["last"] / 2**n for n in range(12)]}
            self.first_step = min(tried, key=tried.get)
        states = self.solve(z0, self.first_step)
        return torch.stack(states) if work["points"] > 2 else states

    def solve(self, z, h):
        s, states, self.evaluations = 0.0, [z], 1
        k = self.start(number(s), z)
        while len(states) < len(self.depths):
            ends_here = s + h >= work["last"]
            h = work["last"] - s if ends_here else h
            end, k_end, error, rates = self.step(z, k, number(s), number(h))
            self.evaluations += 6
            error = error.item()
            if error <= 1:
                to = work["last"] if ends_here else s + h
                if rates is not None:
                    states += self.states_inside(z, h, rates, [(d - s) / h for d in self.depths[len(states):] if d <= to])
                elif ends_here:
                    states.append(end)
                s, z, k = to, end, k_end
            h *= min(10.0, max(0.2, 0.9 * max(error, 1e-10) ** -0.2))
        return states

    @staticmethod
    def states_inside(z, h, rates, at):
        if not at:
            return []
        weights = torch.stack(dense_weights(torch.tensor(at, dtype=torch.float64)), -1).to(dtype)
        return (z + h * torch.tensordot(weights, rates, 1)).unbind(0)


def number(value):
    return torch.tensor(value, dtype=dtype)


run(lambda state: (Dopri5(state), f"dopri5 by hand, {'compiled' if COMPILED else 'eager'}"),
    forward_mode=HAS_DIVERGENCE, counted=False, groups=True)
