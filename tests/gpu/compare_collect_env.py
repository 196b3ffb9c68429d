#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_collect_env.py TORCH.txt CUFIT.txt: field by field, in torch's order.

Fields that torch fills by running programs that cufit does not start (gcc, clang, cmake) may be "Could not collect" in
cufit's text; every other field must say the same. lscpu's block is compared by the lines that both have.
"""
import re
import sys

MAY_BE_MISSING = {"GCC version", "Clang version", "CMake version"}


def fields(path):
    out, key = {}, None
    for line in open(path, errors="replace"):
        line = line.rstrip("\n")
        if line.startswith("cufit:"):
            break
        match = re.match(r"^([A-Z][^:]{1,60}): ?(.*)$", line)
        pip = re.match(r"^\[(pip3?|conda|uv)\] (.*)$", line)
        if pip:
            out.setdefault("packages", []).append(pip.group(2).strip())
        elif match:
            key = match.group(1)
            out[key] = [match.group(2).strip()]
        elif line and key:
            out[key].append(line.strip())
    return out


def main():
    torch, cufit = fields(sys.argv[1]), fields(sys.argv[2])
    agree = differ = 0
    for key, value in torch.items():
        if key.startswith("Vulnerability") or key == "Flags":
            continue
        ours = cufit.get(key)
        if ours is None:
            ours = ["(no such line)"]
        if key == "packages":
            missing = sorted(set(value) - set(ours)), sorted(set(ours) - set(value))
            same = not missing[0] and not missing[1]
            ours, value = missing[1], missing[0]
        else:
            same = [part for part in value if part] == [part for part in ours if part]
        if same:
            agree += 1
        elif key in MAY_BE_MISSING and ours == ["Could not collect"]:
            print(f"not run   {key}")
        else:
            differ += 1
            print(f"differs   {key}: torch {value}, cufit {ours}")
    print(f"collect_env: {agree} fields agree, {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
