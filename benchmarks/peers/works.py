"""The works of the comparison: one dictionary each, with the same weights and data for everybody.

A work is a field (an MLP), a batch, a solver's tolerance and a loss; one iteration is forward, loss, all gradients and a step of
Adam, or the forward solve alone where `trains` is false. Weights are uniform like torch's Linear, from a seed. At trained weights,
they are those of trained/NAME.json, which `benchmarks/compare --train` wrote.
"""
import json
import math
import random
from pathlib import Path

WORKS = {
    "W1": dict(title="annuli: 2-32-2 tanh, batch 1024, 1e-4", features=[2, 32, 2], batch=1024, rtol=1e-4, loss="head"),
    "W2": dict(title="small batch: W1 at batch 128", features=[2, 32, 2], batch=128, rtol=1e-4, loss="head"),
    "W3": dict(title="spiral: 2-50-2 tanh, one sample, 30 points on [0, 1.5], 1e-7/1e-9, float64", features=[2, 50, 2], batch=1,
               rtol=1e-7, atol=1e-9, precision="float64", last=1.5, points=30, loss="points"),
    "W4": dict(title="wide: 2-64-64-2 tanh, batch 1024, 1e-4", features=[2, 64, 64, 2], batch=1024, rtol=1e-4, loss="head"),
    "W5": dict(title="tracking: 2-64-2 tanh with a Galerkin first layer, running loss, batch 4096, 1e-6", features=[2, 64, 2],
               batch=4096, rtol=1e-6, field="galerkin", loss="tracking"),
    "W6": dict(title="flow: 2-64-64-64-2 softplus, exact trace, batch 1024, 1e-5", features=[2, 64, 64, 64, 2], batch=1024,
               rtol=1e-5, activation="softplus", loss="likelihood"),
    "W7": dict(title="image: Table 1's IL-NODE for MNIST, batch 64, 1e-4", batch=64, rtol=1e-4, field="image", loss="image"),
    "W8": dict(title="solve: 4-32-4 tanh, batch 64, [0, 100], 1e-6, forward only", features=[4, 32, 4], batch=64, rtol=1e-6,
               last=100.0, loss="none", trains=False),
}
# How many times faster than the best of all others a release has to be.
BARS = {"W1": 30, "W2": 30, "W3": 3, "W4": 8, "W5": 7, "W6": 3, "W7": 1.2, "W8": 5}
TRAINED = Path(__file__).resolve().parent / "trained"
TRAINING_ITERATIONS = 500
FLOW_LEARNS = {"data": "rings"}  # normal samples are its base already
BASIS = 4  # functions of the Galerkin layer in W5: cos and sin at torchdyn's frequencies 0 and 2
STATES, HIDDEN, CLASSES = 32, 32, 10  # channels of the state and the field in W7, classes of its head


def scaled(batch=None, width=None):
    """W1 with another batch or width, for the picture of how cost grows."""
    work = dict(WORKS["W1"])
    if batch:
        work["batch"] = batch
    if width:
        work["features"] = [2, width, 2]
    work["title"] = f"2-{work['features'][1]}-2 tanh, batch {work['batch']}"
    return work


def uniform(rng, shape, bound):
    count = 1
    for size in shape:
        count *= size
    return dict(shape=shape, data=[round(rng.uniform(-bound, bound), 7) for _ in range(count)])


def linear(rng, inputs, outputs):
    return [uniform(rng, [outputs, inputs], inputs**-0.5), uniform(rng, [outputs], inputs**-0.5)]


def image_parameters(rng):
    conv = lambda inputs, outputs, size: uniform(rng, [outputs, inputs, size, size], (inputs * size * size) ** -0.5)
    ones, zeros = (lambda n: dict(shape=[n], data=[1.0] * n)), (lambda n: dict(shape=[n], data=[0.0] * n))
    bias = lambda n, fan: uniform(rng, [n], fan**-0.5)
    return [conv(1, STATES, 3),                                                    # input layer
            ones(STATES), zeros(STATES), conv(STATES, HIDDEN, 3), conv(HIDDEN, HIDDEN, 3),  # field
            ones(HIDDEN), zeros(HIDDEN), conv(HIDDEN, STATES, 1), bias(STATES, HIDDEN),
            conv(STATES, 4, 1), bias(4, STATES), *linear(rng, 64, CLASSES)]                 # head


def rings(rng, batch):
    """Samples on two noisy rings of radius 1 and 2, and their labels."""
    points, labels = [], []
    for i in range(batch):
        angle, radius = rng.uniform(0, 2 * math.pi), 1 + i % 2
        points += [round(radius * math.cos(angle) + rng.gauss(0, 0.1), 7), round(radius * math.sin(angle) + rng.gauss(0, 0.1), 7)]
        labels.append(2.0 * (i % 2) - 1)
    return dict(shape=[batch, 2], data=points), dict(shape=[batch, 1], data=labels)


def spiral(points, last):
    """z' = A z^3 from (2, 0), A = [[-0.1, 2], [-2, -0.1]], at equally spaced depths; by small steps of rk4."""
    rate = lambda z: (-0.1 * z[0]**3 + 2 * z[1]**3, -2 * z[0]**3 - 0.1 * z[1]**3)
    z, data, steps = (2.0, 0.0), [2.0, 0.0], 200
    h = last / (points - 1) / steps
    for _ in range((points - 1) * steps):
        k1 = rate(z)
        k2 = rate(tuple(a + h / 2 * b for a, b in zip(z, k1)))
        k3 = rate(tuple(a + h / 2 * b for a, b in zip(z, k2)))
        k4 = rate(tuple(a + h * b for a, b in zip(z, k3)))
        z = tuple(a + h / 6 * (p + 2 * q + 2 * r + s) for a, p, q, r, s in zip(z, k1, k2, k3, k4))
        if (_ + 1) % steps == 0:
            data += list(z)
    return dict(shape=[points, 2], data=data)


def trained(name):
    """The work at trained weights."""
    return dict(WORKS[name], weights=name, **FLOW_LEARNS if WORKS[name]["loss"] == "likelihood" else {})


def to_train(name):
    """The work that those weights are trained on."""
    return {key: value for key, value in trained(name).items() if key != "weights"}


def with_first_step(name):
    """The work with a first step that every entry is given, a twentieth of the way (W8, which is long: a thousandth)."""
    last = WORKS[name].get("last", 1.0)
    return dict(WORKS[name], first_step=last / (1000 if name == "W8" else 20))


def complete(work, seed=1):
    """The work with every default, its weights and its data."""
    work = complete_at_start(work, seed)
    if "weights" in work:
        work["parameters"] = json.loads((TRAINED / f"{work['weights']}.json").read_text())["parameters"]
    return work


def complete_at_start(work, seed):
    rng = random.Random(seed)
    work = dict(dict(atol=work["rtol"], precision="float32", last=1.0, points=2, activation="tanh", field="mlp", trains=True, first_step=None),
                **work)
    batch = work["batch"]
    normal = lambda shape: dict(shape=shape, data=[round(rng.gauss(0, 1), 7) for _ in range(shape[0] * shape[1])])
    if work["field"] == "image":
        work["parameters"] = image_parameters(rng)
        work["x"] = dict(shape=[batch, 1, 28, 28], data=[round(rng.random(), 5) for _ in range(batch * 784)])
        work["y"] = dict(shape=[batch], data=[float(i % CLASSES) for i in range(batch)])
        return work
    work["parameters"] = [p for pair in zip(work["features"], work["features"][1:]) for p in linear(rng, *pair)]
    if work["field"] == "galerkin":
        inputs, outputs = work["features"][:2]
        bound = (inputs * BASIS) ** -0.5
        work["parameters"][:2] = [uniform(rng, [BASIS, outputs, inputs], bound), uniform(rng, [BASIS, outputs], bound)]
    work["x"] = normal([batch, work["features"][0]])
    if work["loss"] == "head":
        work["parameters"] += linear(rng, work["features"][-1], 1)
        work["x"], work["y"] = rings(rng, batch)
    if work.get("data") == "rings":
        work["x"], _ = rings(rng, batch)
    if work["loss"] == "points":
        work["x"], work["y"] = dict(shape=[1, 2], data=[2.0, 0.0]), spiral(work["points"], work["last"])
    if work["loss"] == "tracking":
        work["x"]["data"] = [(1.0 - i % 2) + 0.5 * v for i, v in enumerate(work["x"]["data"])]  # around [1, 0]
    return work
