"""docs/benchmarks.md and its pictures, from the figures of benchmarks/compare."""
import math
import os
import platform
import re
from datetime import date
from pathlib import Path

from works import BARS, FAMILIES

COLOURS = {"fathom": "#D55E00", "torchdiffeq": "#0072B2", "torchdyn": "#009E73", "diffrax-tuned": "#CC79A7"}  # Okabe and Ito


def processor():
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.*)", info.read_text()) if info.exists() else None
    flags = info.read_text() if info.exists() else ""
    widest = "AVX-512" if " avx512f " in flags else "AVX2" if " avx2 " in flags else "no AVX2"
    return f"{found[1] if found else platform.machine()}, {os.cpu_count()} cores, {widest}"


def number(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def work_section(name, work):
    lines = [f"### {name}: {work['title']}", "", "| | median ms | quartiles | evaluations | us an evaluation | times fathom |",
             "|---|---:|---:|---:|---:|---:|"]
    ours = next((e["median_ms"] for e in work["entries"] if e["name"] == "fathom" and "median_ms" in e), None)
    for entry in work["entries"]:
        if "problem" in entry:
            lines.append(f"| {entry['name']} | {entry['problem'][:110]} | | | | |")
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
    lines = ["| work | best of torchdyn, torchdiffeq | an evaluation | bar | diffrax | an evaluation | bar |",
             "|---|---:|---:|---:|---:|---:|---:|"]
    for name, work in works.items():
        cells = []
        for (ratio, families), bar in zip(FAMILIES.items(), BARS[name]):
            value, each = work[ratio], ratio_of_evaluations(work, families)
            cells += [f"{value:.1f}x{'' if value >= bar else ' (below)'}" if value else "-", f"{each:.1f}x" if each else "-", str(bar)]
        lines.append(f"| {name} {work['title'].split(':')[0]} | {' | '.join(cells)} |")
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


def write_document(figures, folder):
    lines = ["# Benchmarks", "", f"Written by `benchmarks/compare --docs` on {date.today()}: {processor()}.", "",
             "One iteration is forward, loss, all gradients and a step of Adam (W8: the forward solve alone). Every entry is a process of its",
             "own, warmed up, and asked for a turn of iterations one after the other, one thread each; memory that it gave back stays with it, so that",
             "page faults of a virtual machine count for nobody; three processes of each take over from one",
             "another, since where memory happens to lie makes one faster than the next. Medians of at least 30 turns. All have the same network,",
             "weights, data, solver (dopri5) and tolerance. The learning rate is tiny, so that the work stays the same however many iterations an",
             "entry makes. torch's libraries run on OpenBLAS; diffrax is compiled, `-tuned` bounds its number of steps closely.",
             "",
             "Libraries choose their first step each in its own way, and a smooth field needs one step or three for it: the evaluations of the",
             "forward solve are part of the figure, and beside them is the time of an iteration divided by them, which compares at equal steps.",
             "fathom's way is in [architecture.md](architecture.md); torchdyn takes no estimate, so that it may need six evaluations less.", "",
             "How many times faster fathom's default gradient is, and the bar it is meant to reach:", ""]
    lines += summary(figures["works"]) + [""]
    if "two_threads" in figures:
        brings = [f"{each['ratio']:.2f}x on {name} ({each['turns_left_out']} of {each['turns']} turns left out; with them "
                  f"{each['ratio_of_all_turns']:.2f}x)" for name, each in figures["two_threads"].items()]
        lines += ["A second core brings " + ", ".join(brings) + ". It is the ratio of the medians, one thread on either core",
                  "against two threads on both. Left out are turns in which the virtual machine had no second core to give: two processes of",
                  "one thread each, run at once before and after, took at least 1.4 times as long as alone. The bar is 1.7.", ""]
    for name, work in figures["works"].items():
        lines += work_section(name, work)
    if "growth" in figures:
        lines += ["## How cost grows", "", "W1 with other batches and widths:", ""]
        for axis, label in (("batch", "samples in a batch, 2-32-2"), ("width", "hidden units, batch 1024")):
            file = f"benchmarks-{axis}.svg"
            (folder / file).write_text(picture(figures["growth"][axis], label, f"One training iteration over {axis}"))
            lines.append(f"![Time of a training iteration over {axis}, fathom and others]({file})")
        lines.append("")
    lines += ["## Without a clock", "", "`benchmarks/count` counts the instructions of an iteration of W1 and W3 under valgrind; `--save` and",
              "`--against` compare two states of the code. `cmake --build build/release --target benchmarks` builds the benchmarks of our own",
              "parts: `kernels` (products and functions on a tile, beside Eigen) and `engine` (a step, a solve, a gradient)."]
    (folder / "benchmarks.md").write_text("\n".join(lines) + "\n")
