# SPDX-License-Identifier: Apache-2.0
"""A small CNN on images of four sizes; `bench`: with torch.backends.cudnn.benchmark, which frees the cache from C++.
`python3 benchmark_workload.py bench|plain SNAPSHOT python|all LIMIT_GIB|0` prints the run's peaks and its retries;
settings as usual by PYTORCH_CUDA_ALLOC_CONF. Only torch is needed."""

import json
import random
import sys

import torch
from torch import nn


def main(kind, snapshot, stacks, limit):
    torch.backends.cudnn.benchmark = kind == "bench"
    if limit:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(limit * 2**30 / total)
    torch.cuda.memory._record_memory_history(stacks=stacks, max_entries=1_000_000)
    random.seed(1)
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3), nn.ReLU(), nn.Conv2d(64, 128, 3, 1, 1), nn.ReLU(), nn.Conv2d(128, 128, 5, 1, 2),
        nn.ReLU(), nn.Conv2d(128, 64, 3, 2, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    died = None
    try:
        for step in range(14):
            count, size = random.choice([8, 16, 32]), random.choice([96, 128, 160, 224])
            x = torch.randn(count, 3, size, size, device="cuda")
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            del loss, x
    except torch.OutOfMemoryError:
        died = step
    stats = torch.cuda.memory_stats()
    print(json.dumps({"oom": died, "peak_reserved": stats["reserved_bytes.all.peak"],
                      "peak_allocated": stats["allocated_bytes.all.peak"], "retries": stats["num_alloc_retries"]}))
    torch.cuda.memory._dump_snapshot(snapshot)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]))
