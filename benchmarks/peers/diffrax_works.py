"""diffrax on a work, compiled; see serve.py. Entries: diffrax (its defaults), diffrax-tuned (a bound on the steps close to what the
work needs, which makes its checkpointing cheaper), diffrax-nan (a failure is NaN and not an exception), diffrax-2024 (the same, with
versions of 2024)."""
import math
import platform

from serve import LEARNING_RATE, arguments, serve

work, entry, threads = arguments()

import jax  # noqa: E402

if work["precision"] == "float64":
    jax.config.update("jax_enable_x64", True)
import diffrax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import optax  # noqa: E402

dtype = getattr(jnp, work["precision"])
activation = {"tanh": jnp.tanh, "softplus": jax.nn.softplus}[work["activation"]]


def array(named):
    return jnp.asarray(named["data"], dtype).reshape(named["shape"])


def network(p, s, z):
    weight, bias = p[0], p[1]
    if work["field"] == "galerkin":
        psi = jnp.stack([jnp.ones_like(s), jnp.cos(2 * s), jnp.zeros_like(s), jnp.sin(2 * s)]).astype(dtype)
        weight, bias = jnp.einsum("j,joi->oi", psi, weight), psi @ bias
    h = z @ weight.T + bias
    for n in range(2, len(p), 2):
        h = activation(h) @ p[n].T + p[n + 1]
    return h


def instance_norm(h, scale, shift):
    mean, var = h.mean((2, 3), keepdims=True), h.var((2, 3), keepdims=True)
    return (h - mean) * jax.lax.rsqrt(var + 1e-5) * scale[:, None, None] + shift[:, None, None]


def convolution(h, weight):
    return jax.lax.conv_general_dilated(h, weight, (1, 1), "SAME")


def image_network(p, s, z):
    h = instance_norm(z, p[0], p[1])
    h = jax.nn.softplus(convolution(h, p[2]))
    h = jax.nn.softplus(convolution(h, p[3]))
    return convolution(instance_norm(h, p[4], p[5]), p[6]) + p[7][:, None, None]


def rate(s, state, p):
    if work["field"] == "image":
        return image_network(p, s, state)
    if work["loss"] == "tracking":
        z, _ = state
        target = jnp.stack([jnp.cos(2 * math.pi * s), jnp.sin(2 * math.pi * s)]).astype(dtype)
        return network(p, s, z), ((z - target) ** 2).sum(1)
    if work["loss"] == "likelihood":
        z, _ = state
        f = lambda at: network(p, s, at)
        columns = [jax.jvp(f, (z,), (jnp.zeros_like(z).at[:, k].set(1),)) for k in range(2)]
        return columns[0][0], sum(tangent[:, k] for k, (_, tangent) in enumerate(columns))
    return network(p, s, state)


def solve(p, start):
    depths = jnp.linspace(0, work["last"], work["points"])
    tuned = {"W3": 256, "W8": 1024}.get(work["name"].split("-")[0], 64)
    return diffrax.diffeqsolve(diffrax.ODETerm(rate), diffrax.Dopri5(), 0.0, work["last"], work["first_step"], start, p,
                               saveat=diffrax.SaveAt(ts=depths) if work["points"] > 2 else diffrax.SaveAt(t1=True),
                               stepsize_controller=diffrax.PIDController(rtol=work["rtol"], atol=work["atol"]),
                               max_steps=tuned if entry == "diffrax-tuned" else 4096, throw=entry in ("diffrax", "diffrax-tuned"))


def main():
    parameters = [array(each) for each in work["parameters"]]
    x, y = array(work["x"]), array(work["y"]) if "y" in work else None

    def loss_of(p):
        if work["loss"] == "image":
            solution = solve(p[1:9], convolution(x, p[0]))
            h = convolution(solution.ys[-1], p[9]) + p[10][:, None, None]
            h = h.reshape(len(x), 4, 4, 7, 4, 7).mean((3, 5)).reshape(len(x), -1) @ p[11].T + p[12]
            return optax.softmax_cross_entropy_with_integer_labels(h, y.astype(int)).mean(), solution.stats
        if work["loss"] == "head":
            solution = solve(p[:-2], x)
            return ((solution.ys[-1] @ p[-2].T + p[-1] - y) ** 2).mean(), solution.stats
        if work["loss"] == "points":
            solution = solve(p, x)
            return ((solution.ys - y.reshape(solution.ys.shape)) ** 2).mean(), solution.stats
        solution = solve(p, (x, jnp.zeros(len(x), dtype)))
        z, extra = solution.ys[0][-1], solution.ys[1][-1]
        if work["loss"] == "tracking":
            return extra.mean(), solution.stats
        return (0.5 * (z**2).sum(1) + math.log(2 * math.pi) - extra).mean(), solution.stats

    # It counts steps only. Dopri5 reuses its last stage, and choosing the first step takes an evaluation.
    evaluations = lambda stats: (1 if work["first_step"] else 2) + 6 * int(stats["num_steps"])
    if not work["trains"]:
        forward = jax.jit(lambda p: solve(p, x))

        def iterate():
            solution = forward(parameters)
            solution.ys.block_until_ready()
            return evaluations(solution.stats), 0.0
    else:
        optimizer = optax.adam(LEARNING_RATE)

        @jax.jit
        def step(p, state):
            (loss, stats), gradient = jax.value_and_grad(loss_of, has_aux=True)(p)
            updates, state = optimizer.update(gradient, state)
            return optax.apply_updates(p, updates), state, loss, stats

        held = [parameters, optimizer.init(parameters)]

        def iterate():
            held[0], held[1], loss, stats = step(*held)
            jax.block_until_ready(held[0])
            return evaluations(stats), float(loss)

    serve(iterate, f"diffrax {diffrax.__version__}, jax {jax.__version__}, Python {platform.python_version()}")


main()
