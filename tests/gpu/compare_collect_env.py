#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_collect_env.py TORCH.txt CUFIT.txt: field by field, in torch's order.

A field begins with one of the tool's labels; every other line belongs to the field above it. lscpu's lines are compared
one by one. "not told" is a field that cufit says it could not collect, or a line of lscpu that it leaves out; it counts
apart from "differs", which is another value.
"""
import re
import sys

LABELS = [
    "PyTorch version", "Is debug build", "CUDA used to build PyTorch", "ROCM used to build PyTorch", "OS", "GCC version",
    "Clang version", "CMake version", "Libc version", "Python version", "Python platform", "Is CUDA available",
    "CUDA runtime version", "CUDA_MODULE_LOADING set to", "GPU models and configuration", "Nvidia driver version",
    "cuDNN version", "Is XPU available", "HIP runtime version", "MIOpen runtime version", "Is XNNPACK available",
    "Caching allocator config",
]


def fields(path):
    """Label -> list of its lines; lscpu's as "CPU: <label>", packages as one list."""
    out, key, in_cpu = {}, None, False
    for line in open(path, errors="replace"):
        line = line.rstrip()
        if line == "cufit:":
            break
        if line in ("CPU:", "Versions of relevant libraries:"):
            key, in_cpu = None, line == "CPU:"
            continue
        label, colon, value = line.partition(":")
        package = re.match(r"^\[(pip3?|conda|uv)\] (.*)$", line)
        if package:
            out.setdefault("packages", []).append(line)
        elif in_cpu and colon:
            out["CPU: " + label.strip()] = [value.strip()]
        elif colon and label in LABELS:
            key = label
            out[key] = [value.strip()]
        elif line and key:
            out[key].append(line.strip())
    return {key: [part for part in value if part] for key, value in out.items()}


def main():
    torch, cufit = fields(sys.argv[1]), fields(sys.argv[2])
    agree = differ = silent = 0
    for key, value in torch.items():
        ours = cufit.get(key)
        if ours == value:
            agree += 1
        elif ours is None and key.startswith("CPU: ") or ours == ["Could not collect"]:
            silent += 1
            print(f"not told  {key}: torch {value}")
        else:
            differ += 1
            if key == "packages":
                value, ours = sorted(set(value) - set(ours or [])), sorted(set(ours or []) - set(value))
            print(f"differs   {key}: torch {value}, cufit {ours}")
    for key in cufit:
        if key not in torch:
            differ += 1
            print(f"differs   {key}: torch (no such line), cufit {cufit[key]}")
    in_both = [key for key in torch if key in cufit]
    if in_both != [key for key in cufit if key in torch]:
        differ += 1
        print("differs   order of the fields")
    print(f"collect_env: {agree} fields agree, {differ} differ, {silent} not told")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
