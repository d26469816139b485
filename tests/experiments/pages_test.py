#!/usr/bin/env python3
"""Runs every experiment at a tiny budget and opens the pages in Chromium: pages_test.py FATHOM BROWSER_TEST."""
import subprocess
import sys
import tempfile

TINY = {"iterations": 3, "learned-iterations": 3, "epochs": 1, "batch": 32, "samples": 64, "points": 9, "knots": 4,
        "judged-samples": 64, "tolerance": 1e-3}


def main():
    fathom, browser_test = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        settings = [word for key, value in TINY.items() for word in ("--set", f"{key}={value}")]
        subprocess.run([fathom, "run", "all", "--quick", "--quiet", "--out", folder, *settings], check=True)
        sys.exit(subprocess.run([sys.executable, "-B", browser_test, folder]).returncode)


if __name__ == "__main__":
    main()
