#!/usr/bin/env python3
"""Runs every experiment at a tiny budget and opens the pages in Chromium: pages_test.py FATHOM BROWSER_TEST."""
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

TINY = {"iterations": 3, "learned-iterations": 3, "epochs": 1, "batch": 32, "samples": 64, "points": 9, "knots": 4,
        "judged-samples": 64, "tolerance": 1e-3, "train-images": 64, "test-images": 40, "side": 8}


def write_images(folder):
    """Noise with labels, in the files of MNIST."""
    for prefix, count in (("train", 64), ("t10k", 40)):
        for kind, sides, values in (("images-idx3", (count, 10, 10), bytes(i * 7919 % 251 for i in range(count * 100))),
                                    ("labels-idx1", (count,), bytes(i % 10 for i in range(count)))):
            head = bytes((0, 0, 8, len(sides))) + struct.pack(f">{len(sides)}I", *sides)
            (Path(folder) / f"{prefix}-{kind}-ubyte").write_bytes(head + values)


def main():
    fathom, browser_test = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as images:
        write_images(images)
        settings = [word for key, value in TINY.items() for word in ("--set", f"{key}={value}")]
        subprocess.run([fathom, "run", "all", "--quick", "--quiet", "--out", folder, "--data", images, *settings],
                       check=True)
        sys.exit(subprocess.run([sys.executable, "-B", browser_test, folder]).returncode)


if __name__ == "__main__":
    main()
