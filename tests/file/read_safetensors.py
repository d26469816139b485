#!/usr/bin/env python3
"""Prints a safetensors file as JSON, read by the words of the format alone: read_safetensors.py FILE [--package]

With --package the tensors are also compared with what the `safetensors` package (and numpy) reads.
"""
import json
import struct
import sys

CODES = {"F64": "d", "F32": "f", "I64": "q", "I32": "i", "I16": "h", "I8": "b", "U8": "B", "BOOL": "?"}


def read(path):
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
        data = file.read()
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        code = CODES[entry["dtype"]]
        values = struct.unpack(f"<{(end - begin) // struct.calcsize(code)}{code}", data[begin:end])
        tensors[name] = {"shape": entry["shape"], "values": list(values)}
    return {"metadata": metadata, "tensors": tensors}


def compare_with_package(path, ours):
    from safetensors import safe_open

    with safe_open(path, framework="np") as file:
        assert (file.metadata() or {}) == ours["metadata"], "metadata differ"
        assert set(file.keys()) == set(ours["tensors"]), "names differ"
        for name in file.keys():
            theirs = file.get_tensor(name)
            assert list(theirs.shape) == ours["tensors"][name]["shape"], name
            assert theirs.flatten().tolist() == ours["tensors"][name]["values"], name


if __name__ == "__main__":
    found = read(sys.argv[1])
    if "--package" in sys.argv:
        compare_with_package(sys.argv[1], found)
    json.dump(found, sys.stdout)
