"""docs/benchmarks.md and its pictures, from the figures of benchmarks/compare."""
import math
import os
import platform
import re
import textwrap
from datetime import date
from pathlib import Path

from works import BARS, FAMILIES, WORKS

COLOURS = {"fathom": "#D55E00", "torchdiffeq": "#0072B2", "torchdyn": "#009E73", "diffrax-tuned": "#CC79A7"}  # Okabe and Ito


def processor():
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.*)", info.read_text()) if info.exists() else None
    flags = info.read_text() if info.exists() else ""
    widest = "AVX-512" if " avx512f " in flags else "AVX2" if " avx2 " in flags else "no AVX2"
    return f"{found[1] if found else platform.machine()}, {os.cpu_count()} cores, {widest}"


def number(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def short_title(name):
    return f"{name} {WORKS[name]['title'].split(':')[0]}"


def work_section(name, work):
    lines = [f"### {name}: {work['title']}", "", "| | median ms | quartiles | evaluations | us per evaluation | times fathom |",
             "|---|---:|---:|---:|---:|---:|"]
    ours = next((e["median_ms"] for e in work["entries"] if e["name"] == "fathom" and "median_ms" in e), None)
    for entry in work["entries"]:
        if "problem" in entry:
            lines.append(f"| {entry['name']} | {textwrap.shorten(entry['problem'], 110, placeholder=' ...')} | | | | |")
            continue
        low, high = (number(v) for v in entry["quartiles_ms"])
        times = f"{entry['median_ms'] / ours:.1f}" if ours else ""
        lines.append(f"| {entry['name']} | {number(entry['median_ms'])} | {low} .. {high} | {entry['evaluations']} | "
                     f"{number(1e3 * entry['median_ms'] / entry['evaluations'])} | {times} |")
    return lines + [""]


def ratio_of_evaluations(work, families):
    """As the ratio of times, of the times divided by the evaluations."""
    costs = {each["name"]: each["median_ms"] / each["evaluations"] for each in work["entries"] if "median_ms" in each}
    rivals = [cost for name, cost in costs.items() if name.split("-")[0] in families]
    return min(rivals) / costs["fathom"] if rivals and "fathom" in costs else None


def summary(works):
    lines = ["| work | best of torchdyn, torchdiffeq | per evaluation | target | diffrax | per evaluation | target |",
             "|---|---:|---:|---:|---:|---:|---:|"]
    for name, work in works.items():
        cells = []
        for (ratio, families), bar in zip(FAMILIES.items(), BARS[name]):
            value, each = work[ratio], ratio_of_evaluations(work, families)
            cells += [f"{value:.1f}x{'' if value >= bar else ' (below)'}" if value else "-", f"{each:.1f}x" if each else "-", str(bar)]
        lines.append(f"| {short_title(name)} | {' | '.join(cells)} |")
    return lines


def picture(points, axis, title):
    """Time of an iteration over one quantity, both logarithmic, as an SVG that needs nothing else."""
    width, height, left, right, top, bottom = 720, 440, 70, 130, 40, 60
    entries = [name for name in COLOURS if any(name in point for point in points)]
    values = [point["value"] for point in points]
    times = [point[name] for point in points for name in entries if name in point]
    x_low, x_high = math.log10(min(values)), math.log10(max(values))
    y_low, y_high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    x = lambda v: left + (math.log10(v) - x_low) / (x_high - x_low) * (width - left - right)
    y = lambda v: height - bottom - (math.log10(v) - y_low) / (y_high - y_low) * (height - top - bottom)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13" role="img">',
           f"<title>{title}</title>", f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="{left}" y="24" font-size="15">{title}</text>']
    for power in range(y_low, y_high + 1):
        out.append(f'<line x1="{left}" x2="{width - right}" y1="{y(10**power):.1f}" y2="{y(10**power):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 8}" y="{y(10**power) + 4:.1f}" text-anchor="end">{10**power:g}</text>')
    for value in values:
        out.append(f'<text x="{x(value):.1f}" y="{height - bottom + 18}" text-anchor="middle">{value}</text>')
    out.append(f'<text x="{(left + width - right) / 2}" y="{height - 14}" text-anchor="middle">{axis}</text>')
    out.append(f'<text transform="translate(18 {height / 2}) rotate(-90)" text-anchor="middle">milliseconds an iteration</text>')
    labels = []
    for name in entries:
        line = [(x(p["value"]), y(p[name])) for p in points if name in p]
        out.append(f'<polyline fill="none" stroke="{COLOURS[name]}" stroke-width="2" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in line)}"/>')
        out += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{COLOURS[name]}"/>' for a, b in line]
        labels.append([line[-1][1], line[-1][0], name])
    labels.sort()
    for above, below in zip(labels, labels[1:]):
        below[0] = max(below[0], above[0] + 16)  # names must not lie on each other
    out += [f'<text x="{a + 8:.1f}" y="{b + 4:.1f}" fill="{COLOURS[name]}">{name.removesuffix("-tuned")}</text>' for b, a, name in labels]
    return "\n".join(out + ["</svg>"]) + "\n"


INTRODUCTION = """\
One iteration is forward, loss, all gradients and a step of Adam; W8 is the forward solve alone. Each entry runs in its own process, is
warmed up, and then takes turns with the others on one thread. A turn is at least 30 ms of iterations; its median counts. Memory that a
process frees stays with it, so page faults of the virtual machine do not count. Three processes of each entry run one after the other,
because the place of data in memory affects speed. The tables show medians over at least 30 turns. All entries have the same network,
weights, data, solver (dopri5) and tolerance. The learning rate is tiny, so that the work stays the same however many iterations an
entry makes. torch's libraries run on OpenBLAS; diffrax is compiled, `-tuned` bounds its number of steps closely.

fathom trains by `fathom::backward` and `FusedAdam`. Its loss is `ode->loss` in W1, W2 and W4, `ode->running_loss` in W5,
`flow->log_prob` in W6, torch's mean squares of `ode->trajectory` in W3 and torch's cross entropy of `forward` in W7. torchdiffeq,
torchdyn and torchode train by `loss.backward()` and `torch.optim.Adam`, diffrax by `jax.value_and_grad` and optax's `adam`, all in one
compiled step.

W7 (image) is the one work whose field has no fused kernels, since it is made of convolutions.

Each library chooses its first step in its own way, and on a smooth field this decides between one step and three. The evaluations of
the forward solve are part of the figure. Beside them is the time of an iteration divided by them, which compares at equal steps.
fathom's way is in [architecture.md](architecture.md). torchdyn's first step is longer than torchdiffeq's, so that it often needs fewer
evaluations; but its steps end at every saved depth, so that it takes at least 29 of them for the 30 points of W3.

How many times faster fathom is with its default gradient (W8: without one), and the target:
"""

WITHOUT_A_CLOCK = """\
## Without a clock

`benchmarks/count` counts the instructions of an iteration of W1 and W3 under valgrind; `--save` and `--against` compare two versions of
the code. `cmake --build build/release --target benchmarks` builds the benchmarks of fathom's own parts: `kernels` (products and
functions on a tile, beside other libraries) and `engine` (a step, a solve, a gradient)."""


def remarks(works):
    """Which works and entries have no figures."""
    lines = []
    if absent := [short_title(name) for name in WORKS if name not in works]:
        lines.append(f"Not measured in this sitting: {', '.join(absent)}.")
    entries = [entry for work in works.values() for entry in work["entries"]]
    able = {entry["name"] for entry in entries if "median_ms" in entry}
    if unable := sorted({entry["name"] for entry in entries} - able):
        lines.append(f"Not able to run any of these works: {', '.join(unable)}.")
    return lines + [""] if lines else []


def second_core_lines(two_threads):
    found = ", ".join(f"{each['ratio']:.2f} on {name} ({each['turns_left_out']} of {each['turns']} turns left out; "
                      f"{each['ratio_of_all_turns']:.2f} with them)" for name, each in two_threads.items())
    text = (f"Two cores are faster than one by a factor of {found}. The target is 1.7. The figure is the ratio of the medians, one thread on either core "
            "against two threads on both. Left out are turns in which the virtual machine had no second core to give: two processes of "
            "one thread each, run at once before and after, took at least 1.4 times as long as alone.")
    return [textwrap.fill(text, 136), ""]


def growth_section(figures, folder):
    """With its pictures. Where growth was not measured, what an earlier sitting found stays, with the name of its machine."""
    heading, page = "## How cost grows", folder / "benchmarks.md"
    if "growth" not in figures:
        earlier = re.search(rf"^{heading}\n.*?(?=^## )", page.read_text(), re.M | re.S) if page.exists() else None
        return [earlier[0].rstrip(), ""] if earlier else []
    lines = [heading, "", f"W1 with other batches and widths ({processor()}):", ""]
    for axis, label in (("batch", "samples in a batch, 2-32-2"), ("width", "hidden units, batch 1024")):
        file = f"benchmarks-{axis}.svg"
        (folder / file).write_text(picture(figures["growth"][axis], label, f"One training iteration over {axis}"))
        lines.append(f"![Time of a training iteration over {axis}, fathom and others]({file})")
    return lines + [""]


def write_document(figures, folder):
    works = figures["works"]
    lines = ["# Benchmarks", "", f"Written by `benchmarks/compare --docs` on {date.today()}: {processor()}.", "", INTRODUCTION]
    lines += summary(works) + [""] + remarks(works)
    if "two_threads" in figures:
        lines += second_core_lines(figures["two_threads"])
    for name, work in works.items():
        lines += work_section(name, work)
    lines += growth_section(figures, folder) + [WITHOUT_A_CLOCK]
    (folder / "benchmarks.md").write_text("\n".join(lines) + "\n")
