#!/usr/bin/env python3
"""Opens pages in Chromium, wide and narrow, and checks what a reader would miss.

The checks are checked too: each must complain about a page that was broken on purpose.
"""
import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from browser import chromium

# Marks of data, not of axes, legends and titles.
MARKS = "g.role-mark:not(.mark-group) > *"


def no_complaints(tab, url):
    """The console stays empty."""
    return list(tab.errors)


def no_requests(tab, url):
    """Nothing is fetched but the page."""
    return [f"asks for {each}" for each in tab.requests if each != url and not each.startswith("data:")]


def figures_are_drawn(tab, url):
    return tab.evaluate("""(() => {
      const complaints = [];
      for (const figure of document.querySelectorAll("figure[id]")) {
        const marks = [...figure.querySelectorAll(".drawing svg %s")];
        const seen = marks.filter((mark) => { const box = mark.getBoundingClientRect(); return box.width + box.height > 1; });
        if (seen.length === 0) complaints.push(`${figure.id} has no marks`);
        const svg = figure.querySelector(".drawing svg");
        if (svg && /="[^"]*(NaN|undefined|Infinity)/.test(svg.outerHTML)) complaints.push(`${figure.id} draws what is not a number`);
        if (!figure.querySelector("[role=img]").getAttribute("aria-label")) complaints.push(`${figure.id} has no alternative text`);
        if (!figure.querySelector("figcaption").textContent.trim()) complaints.push(`${figure.id} has no caption`);
      }
      return complaints;
    })()""" % MARKS)


def nothing_overflows(tab, url):
    return tab.evaluate("""(() => {
      const root = document.documentElement, complaints = [];
      if (root.scrollWidth > root.clientWidth) complaints.push(`the page is ${root.scrollWidth} wide on a screen of ${root.clientWidth}`);
      for (const svg of document.querySelectorAll(".drawing svg")) {
        const right = svg.getBoundingClientRect().right;
        if (right > root.clientWidth) complaints.push(`${svg.closest("figure").id} ends at ${right} on a screen of ${root.clientWidth}`);
        const drawn = svg.viewBox.baseVal.width, given = svg.closest(".drawing").clientWidth;
        if (drawn > given + 1) complaints.push(`${svg.closest("figure").id} was shrunk from ${drawn} to ${given}`);
      }
      return complaints;
    })()""")


def nothing_is_cut(tab, url):
    """No words of a figure end in dots, leave their figure or run into each other's place in the legend."""
    return tab.evaluate("""(() => {
      const complaints = [];
      for (const svg of document.querySelectorAll(".drawing svg")) {
        const name = svg.closest("figure").id, frame = svg.getBoundingClientRect();
        for (const words of svg.querySelectorAll("text")) {
          const said = words.textContent, box = words.getBoundingClientRect();
          if (box.width === 0) continue;
          if (said.includes("\u2026")) complaints.push(`${name} cuts "${said}"`);
          const outside = Math.max(frame.left - box.left, box.right - frame.right, frame.top - box.top, box.bottom - frame.bottom);
          if (outside > 2) complaints.push(`${name}: "${said}" ends ${outside} outside`);
        }
        const entries = [...svg.querySelectorAll(".role-legend-label text, .role-title-text text")].map((e) => [e.textContent, e.getBoundingClientRect()]);
        for (const [i, [said, a]] of entries.entries()) {
          for (const [other, b] of entries.slice(i + 1)) {
            const across = Math.min(a.right, b.right) - Math.max(a.left, b.left), down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
            if (across > 1 && down > 2) complaints.push(`${name}: "${said}" lies on "${other}"`);
          }
        }
      }
      return complaints;
    })()""")


def press(tab, key, code):
    for kind in ("keyDown", "keyUp"):
        tab.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)


def sliders_move_points(tab, url):
    """By keyboard: Home takes the states to the first depth, play moves them on."""
    places = "[...document.querySelectorAll('#%s g.samples > *')].map(e => e.getAttribute('transform')).join()"
    complaints = []
    for figure in tab.evaluate("[...document.querySelectorAll('figure')].filter(f => f.querySelector('input')).map(f => f.id)"):
        at_end = tab.evaluate(places % figure)
        tab.evaluate(f"document.querySelector('#{figure} input').focus()")
        press(tab, "Home", 36)
        tab.settle()
        at_start = tab.evaluate(places % figure)
        if at_start == at_end:
            complaints.append(f"{figure}: the slider does not move the points")
        tab.evaluate(f"document.querySelector('#{figure} button').click()")
        deadline = time.monotonic() + 2
        while tab.evaluate(places % figure) == at_start and time.monotonic() < deadline:
            tab.settle()
        if tab.evaluate(places % figure) == at_start:
            complaints.append(f"{figure}: the play button does not move the points")
        tab.evaluate(f"document.querySelector('#{figure} button').click()")
        tab.evaluate(f"document.querySelector('#{figure} input').focus()")
        press(tab, "End", 35)
        tab.settle()
        if tab.evaluate(places % figure) != at_end:
            complaints.append(f"{figure}: the end of the slider is not the last depth")
    return complaints


def hover_tells_about_a_sample(tab, url):
    spot = tab.evaluate("""(() => {
      const sample = document.querySelector("g.samples > *");
      if (!sample) return null;
      sample.scrollIntoView({ block: "center" });
      const box = sample.getBoundingClientRect();
      return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    })()""")
    if not spot:
        return []
    tab.settle()
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", **spot)
    tab.settle()
    words = tab.evaluate("document.querySelector('#tip').hidden ? '' : document.querySelector('#tip').textContent")
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    return [f"hover says nothing of {word}: {words!r}" for word in ("input", "label", "path length", "depth") if word not in words]


def dark_is_dark(tab, url):
    def colours(scheme):
        tab.scheme(scheme)
        tab.settle()
        return tab.evaluate("""[getComputedStyle(document.body).backgroundColor,
          ...[...document.querySelectorAll(".drawing svg .role-axis-label text")].slice(0, 1).map((e) => getComputedStyle(e).fill)]""")
    light, dark = colours("light"), colours("dark")
    tab.scheme("light")
    return [f"{a} in both schemes" for a, b in zip(light, dark) if a == b]


CHECKS = {
    375: [no_complaints, no_requests, figures_are_drawn, nothing_overflows, nothing_is_cut],
    1280: [figures_are_drawn, nothing_overflows, nothing_is_cut, sliders_move_points, hover_tells_about_a_sample, dark_is_dark, no_complaints,
           no_requests],
}


def complaints_about(tab, page):
    url = page if "://" in str(page) else page.resolve().as_uri()
    complaints = []
    tab.resize(375)
    tab.open(url)
    for width, checks in CHECKS.items():
        tab.resize(width)
        for check in checks:
            complaints += [f"{check.__name__} at {width}: {each}" for each in check(tab, url)]
    return complaints


def broken(page):
    """(what must complain, the page with one thing broken)"""
    first_figure = page.index('<script type="application/json">')
    yield "no_complaints", page.replace("</main>", "</main><script>console.error('broken on purpose')</script>")
    yield "no_requests", page.replace("img-src data:", "img-src *").replace("</main>", "</main><img src='http://127.0.0.1:9/'>")
    yield "figures_are_drawn", page[:first_figure] + page[first_figure:].replace('"marks":[', '"marks":[],"unused":[', 1)
    yield "nothing_overflows", page.replace("</main>", "</main><div style='width:400px'>.</div>")
    yield "nothing_is_cut", page.replace('"labelLimit":0', '"labelLimit":60')
    yield "sliders_move_points", page.replace("view.signal(signal, +range.value)", "view.signal(signal, high)")
    yield "hover_tells_about_a_sample", page.replace("tip.hidden = value == null;", "tip.hidden = true;")
    yield "dark_is_dark", page.replace("prefers-color-scheme: dark", "prefers-color-scheme: none")


def check_the_checks(tab, page):
    text = page.read_text()
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for check, content in broken(text):
            if content == text:
                failures.append(f"{check}: found nothing to break in {page}")
            file = Path(folder) / f"{check}.html"
            file.write_text(content)
            if not any(each.startswith(check) for each in complaints_about(tab, file)):
                failures.append(f"{check} does not see a page that is broken")
    return failures


def record(iteration):
    return json.dumps({"model": "vanilla", "iteration": iteration, "loss": 1 / iteration, "evaluations": 26}) + "\n"


def view_follows_a_run(tab, fathom, folder, report):
    """`fathom view`: the index, the page of a run that trains and updates itself, then its report; ends by Ctrl-C."""
    run = folder / "runs" / "first"
    run.mkdir(parents=True)
    log = run / "metrics.jsonl"
    log.write_text(record(1) + record(2))
    server = subprocess.Popen([fathom, "view", folder / "runs", "--port", "0"], stdout=subprocess.PIPE, text=True)
    complaints = []
    try:
        url = server.stdout.readline().strip()
        tab.resize(375)
        tab.open(url)
        if "training" not in tab.evaluate("document.body.innerText"):
            complaints.append("the index does not say that a run trains")
        complaints += nothing_overflows(tab, url) + no_complaints(tab, url)
        tab.open(url + "first/")
        complaints += figures_are_drawn(tab, url) + nothing_overflows(tab, url)
        with log.open("a") as out:
            out.write(record(3) + record(4))
        shows = "document.querySelector('.claim').textContent.includes('iteration 4')"
        if not eventually(tab, shows):
            complaints.append("the page of a run that trains does not update itself")
        complaints += figures_are_drawn(tab, url)
        shutil.copy(report, run / "report.html")
        (run / "metrics.json").write_text('{"experiment": "first", "size": "quick", "seed": 0, "models": {}, "verdicts": []}')
        if not eventually(tab, "document.querySelectorAll('figure[id]').length > 1"):
            complaints.append("the report does not appear when the run is done")
        complaints += figures_are_drawn(tab, url) + no_complaints(tab, url)
        complaints += [f"asks for {each}" for each in tab.requests if not each.startswith((url, "data:"))]
        server.send_signal(signal.SIGINT)
        if server.wait(10) != 0:
            complaints.append(f"Ctrl-C ends `fathom view` with exit code {server.returncode}")
    finally:
        server.kill()
        server.wait()
    return [f"fathom view: {each}" for each in complaints]


def eventually(tab, condition, seconds=15):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if tab.evaluate(condition):
                return True
        except RuntimeError:
            pass  # the page is being replaced
        time.sleep(0.2)
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, help="pages, or folders with pages in them")
    parser.add_argument("--sample", metavar="PROGRAM", help="writes the sample page, which is checked and then broken on purpose")
    parser.add_argument("--fathom", metavar="PROGRAM", help="the command line, to test its `view`")
    parser.add_argument("--screenshots", type=Path, metavar="FOLDER", help="also keep pictures of every page")
    options = parser.parse_args()
    pages = [page for each in options.pages for page in (sorted(each.rglob("*.html")) if each.is_dir() else [each])]
    failures = []
    with tempfile.TemporaryDirectory() as folder, chromium() as tab:
        if options.sample:
            sample = Path(folder) / "sample.html"
            subprocess.run([options.sample, sample], check=True)
            pages.append(sample)
            failures += check_the_checks(tab, sample)
            if options.fathom:
                failures += view_follows_a_run(tab, options.fathom, Path(folder), sample)
        for page in pages:
            failures += [f"{page}: {each}" for each in complaints_about(tab, page)]
            if page.stat().st_size > 5e6:
                failures.append(f"{page}: {page.stat().st_size} bytes, more than 5 MB")
            if options.screenshots:
                keep_screenshots(tab, page, options.screenshots)
    if not pages:
        sys.exit("no pages to check")
    print("\n".join(failures) or f"{len(pages)} page(s) are as they should be")
    sys.exit(1 if failures else 0)


def keep_screenshots(tab, page, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for width in (375, 1280):
        for scheme in ("light", "dark"):
            tab.resize(width)
            tab.scheme(scheme)
            tab.settle()
            tab.screenshot(folder / f"{page.parent.name}-{page.stem}-{width}-{scheme}.png")
    tab.scheme("light")


if __name__ == "__main__":
    main()
