#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose memory on a GPU moves as real ones' does, for `cufit top`'s foresight.

    python3 tests/gpu/foresight_runs.py KIND SECONDS

Kinds: leak (200 MiB/s, kept tensors), slow_leak (40 MiB/s), lengths (batches of variable length),
validation (a peak every 40 s), epochs (a checkpoint and an emptied cache every 60 s), warm_up.
"""

import random
import sys
import time

import torch

MIB = 1 << 20


def held(mib):
    return torch.empty(int(mib * MIB), dtype=torch.uint8, device="cuda")


def step(kind, at, kept, chance):
    if kind in ("leak", "slow_leak"):
        rate = 200 if kind == "leak" else 40
        kept.extend(held(4) for _ in range(int((at * rate - 4 * len(kept)) / 4)))
        batch = held(500)
    elif kind == "lengths":
        batch = held(200 + 1800 * chance.random() ** 3)
    elif kind == "validation":
        batch = held(3000 if at % 40 > 35 else 1000)
    elif kind == "epochs":
        batch = held(1000)
        if at % 60 > 59:
            batch = held(2500)
            torch.cuda.empty_cache()
    else:
        kept.append(held(1500 / (1 + len(kept)) ** 1.5))
        batch = held(800)
    batch[: 64 * MIB].fill_(1)
    torch.cuda.synchronize()


def main():
    kind, seconds = sys.argv[1], float(sys.argv[2])
    chance, kept, begun = random.Random(7), [], time.monotonic()
    while (at := time.monotonic() - begun) < seconds:
        step(kind, at, kept, chance)
        time.sleep(0.25)


if __name__ == "__main__":
    main()
