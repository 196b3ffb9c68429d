#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_loads.py DOCTOR.json: the libraries that a real `import torch` maps against what doctor said would load.

Starts this interpreter once more, imports torch, runs one matrix product and one convolution, and reads
/proc/self/maps. Every library that doctor predicted with a path must be mapped from that very file when it is mapped at
all; a library mapped from another file than predicted is a wrong prediction and fails.
"""
import json
import os
import re
import subprocess
import sys

SCRIPT = """
import torch
if torch.cuda.is_available():
    x = torch.randn(64, 64, device='cuda'); (x @ x).sum().item()
    torch.nn.functional.conv2d(torch.randn(1, 3, 16, 16, device='cuda'), torch.randn(4, 3, 3, 3, device='cuda')).sum().item()
print(open('/proc/self/maps').read())
"""


def family(path):
    return re.sub(r"\.so.*$", ".so", os.path.basename(path))


def main():
    facts = json.load(open(sys.argv[1]))["facts"]
    active = next((env for env in facts["envs"] if env.get("active")), facts["envs"][0])
    out = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True).stdout
    mapped = {}
    for line in out.splitlines():
        parts = line.split(None, 5)
        if len(parts) == 6 and ".so" in parts[5]:
            mapped.setdefault(family(parts[5]), set()).add(os.path.realpath(parts[5]))
    agree = wrong = unseen = 0
    for load in active.get("loads", []):
        name, path = load["name"], load.get("path", "")
        if not path:
            print(f"missing   {name}: predicted to be found nowhere; mapped: {mapped.get(family(name))}")
            wrong += family(name) in mapped
            continue
        if not os.path.isabs(path):
            path = os.path.join(active["path"], path)
        real = os.path.realpath(path)
        seen = mapped.get(family(path)) or mapped.get(family(real))
        if not seen:
            unseen += 1
        elif real in seen:
            agree += 1
        else:
            wrong += 1
            print(f"WRONG     {name}: predicted {real}, mapped {sorted(seen)}")
    print(f"loads: {agree} agree, {wrong} wrong, {unseen} predicted but not mapped in this run")
    return 1 if wrong or not agree else 0


if __name__ == "__main__":
    sys.exit(main())
