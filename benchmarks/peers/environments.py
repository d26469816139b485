"""The Pythons that the peers run in, made where they are missing and kept in the user's cache, since the newest torch takes gigabytes."""
import functools
import glob
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fathom" / "peers"
TORCH_PEERS = ["torchdyn", "torchcde", "torchsde", "trampoline", "torchtyping", "typeguard==2.13.3"]  # with their own torch they would fit no other


class Environment(NamedTuple):
    what: str
    packages: list
    alone: list = []           # packages that are installed without what they ask for
    oldest: tuple = (3, 10)    # Pythons that the packages work with
    newest: tuple = (99, 0)
    wanted: tuple = (3, 10)    # from which Python on they are at their best
    debian: list = []          # packages of Debian: then the Python is Debian's, and sees them
    flags: list = []


ENVIRONMENTS = {
    # Without OpenBLAS, Debian's torch runs on the reference BLAS.
    "torch-debian": Environment("Debian's torch", [], [*TORCH_PEERS, "torchdiffeq", "torchode", "scipy<1.12"],
                                debian=["python3-torch", "python3-venv", "libopenblas0-pthread"], flags=["--system-site-packages"]),
    "torch-newest": Environment("the newest torch", ["torch", "torchdiffeq", "torchode", "scipy", "attrs"], TORCH_PEERS),
    "jax-newest": Environment("the newest jax", ["diffrax", "optax"], wanted=(3, 12)),
    # The last jax before its loops of small kernels became slower on CPUs.
    "jax-0.4.31": Environment("jax 0.4.31", ["jax==0.4.31", "jaxlib==0.4.31", "diffrax==0.6.0", "optax"], newest=(3, 12)),
}


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def run(command, log):
    with open(log, "a") as out:
        print("$", *command, file=out, flush=True)
        subprocess.run(command, check=True, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)


@functools.cache
def pythons():
    """{(3, 13): path}, the newest first: those on PATH, Debian's, and pyenv's. Each is asked, since a name may be a shim of nothing."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    candidates = [path for folder in [*folders, "/usr/bin"] for path in glob.glob(f"{glob.escape(folder)}/python3*") if folder]
    candidates += glob.glob(str(Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions" / "*" / "bin" / "python3"))
    found = {}
    for path in candidates:
        if not Path(path).name.removeprefix("python3").lstrip(".").isdigit() and Path(path).name != "python3":
            continue
        asked = subprocess.run([path, "-c", "import sys, venv, ensurepip; print(*sys.version_info[:2])"], capture_output=True, text=True)
        if asked.returncode == 0:
            found.setdefault(tuple(int(n) for n in asked.stdout.split()), path)
    return dict(sorted(found.items(), reverse=True))


def text_of(version):
    return ".".join(str(n) for n in version)


def pythons_for(environment):
    """The interpreters to try, the newest first; raises with what is missing."""
    if environment.debian:
        return ["/usr/bin/python3"]
    fitting = [path for version, path in pythons().items() if environment.oldest <= version <= environment.newest]
    if not fitting:
        limit = f" to {text_of(environment.newest)}" if environment.newest < (99, 0) else " or later"
        raise RuntimeError(f"needs Python {text_of(environment.oldest)}{limit}; found {', '.join(map(text_of, pythons())) or 'none'}")
    return fitting


def shortcomings():
    """What this machine lacks for every peer to be at its best, as sentences."""
    best = max(pythons(), default=(0, 0))
    return [f"{each.what} was installed for Python {text_of(best)}; it is at its best from Python {text_of(each.wanted)} on"
            for each in ENVIRONMENTS.values() if not each.debian and best < each.wanted]


def is_complete(name):
    """Made of what is asked for today?"""
    stamp = CACHE / name / ".complete"
    return stamp.exists() and json.loads(stamp.read_text())["made_of"] == made_of(name)


def made_of(name):
    return [*ENVIRONMENTS[name].packages, *ENVIRONMENTS[name].alone]


def stamp(name):
    """Marks the environment as complete, with its size."""
    folder = CACHE / name
    size = sum(os.lstat(os.path.join(at, file)).st_size for at, _, files in os.walk(folder) for file in files) / 1e6
    (folder / ".complete").write_text(json.dumps({"made_of": made_of(name), "megabytes": round(size)}))
    return size


def make(name, python, log):
    environment, folder = ENVIRONMENTS[name], CACHE / name
    missing = [p for p in environment.debian if subprocess.run(["dpkg", "-s", p], capture_output=True).returncode]
    if missing:
        sudo = [] if os.geteuid() == 0 else ["sudo"]
        run([*sudo, "apt-get", "-y", "update"], log)
        run([*sudo, "apt-get", "-y", "--no-install-recommends", "install", *missing], log)
    run([python, "-m", "venv", "--clear", *environment.flags, str(folder)], log)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install"]
    if environment.packages:
        run([*pip, *environment.packages], log)
    if environment.alone:
        run([*pip, "--no-deps", *environment.alone], log)


def python_of(name):
    """The Python of an environment, made when it is not there; raises with the end of the log when that fails."""
    folder, log = CACHE / name, CACHE / f"{name}.log"
    python = folder / "bin" / "python"
    if is_complete(name):
        return python
    CACHE.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    say(f"compare: setting up {ENVIRONMENTS[name].what} for the peers, once, in {CACHE}; log in {log}")
    for candidate in pythons_for(ENVIRONMENTS[name]):
        try:
            make(name, candidate, log)
            say(f"compare: {ENVIRONMENTS[name].what} takes {stamp(name):.0f} MB")
            return python
        except (subprocess.CalledProcessError, OSError) as failure:
            shutil.rmtree(folder, ignore_errors=True)
            error = failure
    tail = log.read_text().strip().splitlines()[-1:] if log.exists() else []
    raise RuntimeError(f"cannot be installed: {tail[0] if tail else error}")
