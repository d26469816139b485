"""docs/benchmarks.md and its pictures, from the figures of benchmarks/compare."""
import os
import platform
import re
import textwrap
from datetime import date
from pathlib import Path

from entries import ENTRIES, RIVALS, best
from pictures import growth_picture
from works import BARS, TRAINING_ITERATIONS, WORKS


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


def work_section(heading, work):
    lines = [heading, "", "| | median ms | quartiles | evaluations | us per evaluation | times fathom |", "|---|---:|---:|---:|---:|---:|"]
    ours = best(work["entries"], "fathom")
    for entry in work["entries"]:
        if "problem" in entry:
            lines.append(f"| {entry['name']} | {textwrap.shorten(entry['problem'], 110, placeholder=' ...')} | | | | |")
            continue
        low, high = (number(v) for v in entry["quartiles_ms"])
        times = f"{entry['median_ms'] / ours['median_ms']:.1f}" if ours else ""
        lines.append(f"| {entry['name']} | {number(entry['median_ms'])} | {low} .. {high} | {entry['evaluations']} | "
                     f"{number(1e3 * entry['median_ms'] / entry['evaluations'])} | {times} |")
    return lines + [""]


def ratio_of_evaluations(work, family):
    """As the ratio of times, of the times divided by the evaluations."""
    cost = lambda each: each["median_ms"] / each["evaluations"]
    ours, rival = best(work["entries"], "fathom"), best(work["entries"], family)
    return cost(rival) / cost(ours) if ours and rival else None


POSED = {"works": "", "trained": ", trained", "given": ", given step"}


def summary(figures):
    lines = ["| work | fathom, ms | best with torch | | per evaluation | best of diffrax | | per evaluation | target |",
             "|---|---:|---|---:|---:|---|---:|---:|---:|"]
    for name in WORKS:
        for way, words in POSED.items():
            if name in figures.get(way, {}):
                lines.append(summary_row(short_title(name) + words, figures[way][name], BARS[name] if way != "given" else None))
    return lines


def summary_row(title, work, bar):
    ours = best(work["entries"], "fathom")
    cells = [f"{number(ours['median_ms'])} ({ours['name']})" if ours else "-"]
    for family in RIVALS:
        ratio, each = work[f"ratio_{family}"], ratio_of_evaluations(work, family)
        cells += [work[f"best_{family}"] or "-", f"{ratio:.1f}x" if ratio else "-", f"{each:.1f}x" if each else "-"]
    below = bar and work["ratio"] and work["ratio"] < bar
    return f"| {title} | {' | '.join(cells)} | {f'{bar}x' if bar else ''}{' (below)' if below else ''} |"


INTRODUCTION = f"""\
One iteration is forward, loss, all gradients and a step of Adam; W8 is the forward solve alone. Each entry runs in its own process, is
warmed up, and then takes turns with the others on one thread. A turn is at least 30 ms of iterations; its median counts. Memory that a
process frees stays with it, so page faults of the virtual machine do not count. Three processes of each entry run one after the other,
because the place of data in memory affects speed. The tables show medians over at least 30 turns. All entries have the same network,
weights, data, solver (dopri5) and tolerance. The learning rate is tiny, so that the work stays the same however many iterations an
entry makes.

Each work is posed in three ways:
- at the weights it starts from, uniform as torch's. Fields are then smooth, and most solves take one to three steps;
- *trained*: at weights that {TRAINING_ITERATIONS} iterations of Adam at a rate of 0.01 have led to, the same for all. They are saved with
  the works (`benchmarks/peers/trained`). The flow is trained on two rings, and its work at trained weights has those as data;
- *given step*: at the weights it starts from, with a first step that all entries are given, a twentieth of the way (of W8 a thousandth).

The entries, and what each does better than its library's defaults:
- `fathom` trains by `fathom::backward` and `FusedAdam`. Its loss is `ode->loss` in W1, W2 and W4, `ode->running_loss` in W5,
  `flow->log_prob` in W6, torch's mean squares of `ode->trajectory` in W3 and torch's cross entropy of `forward` in W7. `fathom-core` is
  `Session` and `Adam`, with no torch in the process. `-adjoint` is the continuous adjoint, `fathom-tensor` the engine for any torch field.
- `torchdiffeq`, `torchdyn` and `torchode` run on Debian's torch with OpenBLAS, `-newest` and `torchode-jit` (TorchScript) on the newest
  torch of PyPI with its fused Adam; `-forward` finds W6's divergence by forward mode.
- `torch-expert` is what an expert would write for one work: dopri5 by hand, all stages and the error in one graph of `torch.compile`,
  the loop in Python, no evaluation spent on a first step, fused Adam, W6's divergence by forward mode. `-eager` is not compiled.
- `diffrax` is one compiled step of `jax.value_and_grad` and optax's `adam`, on the newest jax; `-tuned` bounds its number of steps closely,
  `-nan` reports failures as NaN (`EQX_ON_ERROR=nan`, `throw=False`), as its authors advise for small works; `-2024` does so on jax 0.4.31
  with diffrax 0.6.0, the last whose compiled loops of small kernels ran without today's overhead on CPUs.

## Figures

How many times faster the quickest of `fathom` and `fathom-core` is than the quickest entry with torch and than the quickest with diffrax,
and the target against both:
"""

HOW_TO_READ = """\
## How to read this

In fathom's favour:
- One thread of a CPU, and small models. On a GPU, or for wide layers, others are in their element; fathom has no GPU.
- Works far below 100 ms are, for frameworks, mostly overhead of a call. Who solves larger problems sees smaller factors: compare W1 with W4.
- fathom's first step is longer than that of others, so that it needs fewer evaluations where a solve takes one to three steps. *Given
  step* removes that, and so does *per evaluation*.
- The works were chosen by fathom's authors, and its kernels were tuned on them, on processors like this one, with AVX-512.
- `fathom` and `fathom-core` are two ways to write a program; the quicker one counts, as with the others.

In favour of others:
- `torch-expert` is a program for one work, without checks, options, dense output where it is not needed, and error messages. Its first step
  is the best of twelve that were tried before the clock ran; no user has that.
- The best of each family is picked for each work and way anew, over versions and settings that no single installation has.
- Compilation is not counted: up to half a minute for each shape with torch, seconds with jax, none with fathom.
- Gradients: all of these are derivatives of the computed solution but those of `-adjoint`. Accuracy is not part of these figures.

Not measured: GPUs, Julia (SciMLSensitivity), MKL or AOCL builds of numpy's kind for Debian's torch, more than two cores.
"""

WITHOUT_A_CLOCK = """\
## Without a clock

`benchmarks/count` counts the instructions of an iteration of W1 and W3 under valgrind; `--save` and `--against` compare two versions of
the code. `cmake --build build/release --target benchmarks` builds the benchmarks of fathom's own parts: `kernels` (products and
functions on a tile, beside other libraries) and `engine` (a step, a solve, a gradient)."""


def remarks(figures):
    """Which works and entries have no figures, and what was missing."""
    works = figures["works"]
    lines = []
    if absent := [short_title(name) for name in WORKS if name not in works]:
        lines.append(f"Not measured in this sitting: {', '.join(absent)}.")
    entries = [entry for work in works.values() for entry in work["entries"]]
    able = {entry["name"] for entry in entries if "median_ms" in entry}
    if unable := sorted({entry["name"] for entry in entries} - able):
        lines.append(f"Not able to run any of these works: {', '.join(unable)}.")
    if "trained" in figures and (untrained := [name for name in works if WORKS[name].get("trains", True) and name not in figures["trained"]]):
        lines.append(f"Not measured at trained weights: {', '.join(untrained)}.")
    lines += [f"Missing on this machine: {each}." for each in figures.get("shortcomings", [])]
    return lines + [""] if lines else []


def versions(works):
    """What ran: one line for each set of versions."""
    by_version = {}
    for work in works.values():
        for entry in work["entries"]:
            if entry.get("version") and ENTRIES[entry["name"]].environment:
                by_version.setdefault(entry["version"], dict.fromkeys([]))[entry["name"]] = None
    lines = [f"- {', '.join(names)}: {version}" for version, names in by_version.items()]
    return ["Versions:", "", *lines, ""] if lines else []


def second_core_lines(two_threads):
    found = ", ".join(f"{each['ratio']:.2f} on {name} ({each['turns_left_out']} of {each['turns']} turns left out; "
                      f"{each['ratio_of_all_turns']:.2f} with them)" for name, each in two_threads.items())
    text = (f"Two cores are faster than one by a factor of {found}. The target is 1.7. The figure is the ratio of the medians, one thread on either core "
            "against two threads on both. Left out are turns in which the virtual machine had no second core to give: two processes of "
            "one thread each, run at once before and after, took at least 1.4 times as long as alone.")
    return [textwrap.fill(text, 136), ""]


def earlier_section(heading, folder):
    """What an earlier sitting wrote under this heading."""
    page = folder / "benchmarks.md"
    earlier = re.search(rf"^{heading}\n.*?(?=^## |\Z)", page.read_text(), re.M | re.S) if page.exists() else None
    return [earlier[0].rstrip(), ""] if earlier else []


def growth_section(figures, folder):
    """With its pictures. Where growth was not measured, what an earlier sitting found stays, with the name of its machine."""
    heading = "## How cost grows"
    if "growth" not in figures:
        return earlier_section(heading, folder)
    lines = [heading, "", f"W1 with other batches and widths ({processor()}):", ""]
    for axis, label in (("batch", "samples in a batch, 2-32-2"), ("width", "hidden units, batch 1024")):
        file = f"benchmarks-{axis}.svg"
        (folder / file).write_text(growth_picture(figures["growth"][axis], label, f"One training iteration over {axis}"))
        lines.append(f"![Time of a training iteration over {axis}, fathom and others]({file})")
    return lines + [""]


def write_document(figures, folder):
    lines = ["# Benchmarks", "", f"Written by `benchmarks/compare --docs` on {date.today()}: {processor()}.", "", INTRODUCTION]
    lines += summary(figures) + [""] + remarks(figures) + versions(figures["works"])
    if "two_threads" in figures:
        lines += second_core_lines(figures["two_threads"])
    lines += [HOW_TO_READ, "## Works", ""]
    for name in WORKS:
        for way, words in POSED.items():
            if name in figures.get(way, {}):
                title = WORKS[name]["title"] if way == "works" else short_title(name).split(" ", 1)[1]
                lines += work_section(f"### {name}: {title}{words}", figures[way][name])
    lines += growth_section(figures, folder) + [WITHOUT_A_CLOCK]
    (folder / "benchmarks.md").write_text("\n".join(lines) + "\n")
