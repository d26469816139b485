"""Who takes part in benchmarks/compare, and in which families the best is picked."""
from typing import NamedTuple


class Participant(NamedTuple):
    family: str
    environment: str         # of environments.py; none: a program of our own build
    program: str
    variables: dict = {}     # of the process
    losses: tuple = ()       # of the works that it is meant for; none: all
    thorough: bool = False   # left out where works are repeated at trained weights or with a given first step


# Errors as NaN in place of a callback to Python from within the compiled step, as its authors advise for small works.
NAN = {"EQX_ON_ERROR": "nan"}
ENTRIES = {
    "fathom": Participant("fathom", "", "fathom_works"),
    "fathom-adjoint": Participant("", "", "fathom_works", thorough=True),
    "fathom-tensor": Participant("", "", "fathom_works", thorough=True),
    "fathom-core": Participant("fathom", "", "fathom_core_works"),  # Session and Adam, without torch in the process
    "fathom-core-adjoint": Participant("", "", "fathom_core_works", thorough=True),
    "torchdiffeq": Participant("torch", "torch-debian", "torch_works.py"),
    "torchdiffeq-adjoint": Participant("torch", "torch-debian", "torch_works.py", thorough=True),
    "torchdiffeq-newest": Participant("torch", "torch-newest", "torch_works.py"),
    "torchdiffeq-forward": Participant("torch", "torch-newest", "torch_works.py", losses=("likelihood",)),
    "torchdyn": Participant("torch", "torch-debian", "torch_works.py"),
    "torchdyn-adjoint": Participant("torch", "torch-debian", "torch_works.py", thorough=True),
    "torchdyn-newest": Participant("torch", "torch-newest", "torch_works.py"),
    "torchdyn-forward": Participant("torch", "torch-newest", "torch_works.py", losses=("likelihood",)),
    "torchode": Participant("torch", "torch-debian", "torch_works.py", thorough=True),
    "torchode-newest": Participant("torch", "torch-newest", "torch_works.py"),
    "torchode-jit": Participant("torch", "torch-newest", "torch_works.py", losses=("head", "points", "none")),
    "torch-expert": Participant("torch", "torch-newest", "torch_expert.py"),
    "torch-expert-eager": Participant("torch", "torch-newest", "torch_expert.py"),
    "diffrax": Participant("diffrax", "jax-newest", "diffrax_works.py"),
    "diffrax-tuned": Participant("diffrax", "jax-newest", "diffrax_works.py", thorough=True),
    "diffrax-nan": Participant("diffrax", "jax-newest", "diffrax_works.py", NAN),
    "diffrax-2024": Participant("diffrax", "jax-0.4.31", "diffrax_works.py", NAN),
}
RIVALS = ("torch", "diffrax")


def takes_part(name, work, thorough):
    """In a work, and in its repetitions at trained weights or with a given first step (not `thorough`)?"""
    entry = ENTRIES[name]
    return (not entry.losses or work["loss"] in entry.losses) and (thorough or not entry.thorough)


def best(results, family):
    """The quickest result of a family, or None."""
    able = [each for each in results if "median_ms" in each and ENTRIES[each["name"]].family == family]
    return min(able, key=lambda each: each["median_ms"], default=None)
