# SPDX-License-Identifier: Apache-2.0
"""A small transformer on sequences of five lengths that evaluates larger batches after every eight steps; `empty`: it
calls torch.cuda.empty_cache() before each evaluation and once after one, `plain`: never.
`python3 cleared_workload.py empty|plain SNAPSHOT|- LIMIT_GIB|0 [none|alloc|all]` (whose stacks are recorded) prints the run's peaks, its retries and the step at
which it ran out of memory; settings as usual by PYTORCH_CUDA_ALLOC_CONF. Only torch is needed."""

import json
import random
import sys

import torch
from torch import nn

EVALUATED = (150, 300, 420)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(8000, 512)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0) for _ in range(4))
        self.head = nn.Linear(512, 8000)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def tokens(rows, length):
    return torch.randint(0, 8000, (rows, length), device="cuda")


def run(empties, out):
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    for step in range(24):
        out["step"] = step
        x = tokens(16, random.choice([64, 96, 160, 224, 320]))
        with torch.autocast("cuda", torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del loss, x
        if step % 8 != 7:
            continue
        if empties:
            torch.cuda.empty_cache()
        model.eval()
        with torch.no_grad():
            for length in EVALUATED:
                y = model(tokens(48, length))
                y.float().softmax(-1).max().item()
                del y
        model.train()
        if empties and step == 15:
            torch.cuda.empty_cache()


def main(kind, snapshot, limit, context):
    total = torch.cuda.get_device_properties(0).total_memory
    if limit:
        torch.cuda.set_per_process_memory_fraction(limit * 2**30 / total)
    torch.cuda.memory._record_memory_history(context=None if context == "none" else context, stacks="python",
                                             max_entries=1_000_000)
    random.seed(5)
    torch.manual_seed(0)
    out, died = {}, None
    try:
        run(kind == "empty", out)
    except torch.OutOfMemoryError:
        died = out["step"]
    stats = torch.cuda.memory_stats()
    if snapshot != "-":
        torch.cuda.memory._dump_snapshot(snapshot)
    print(json.dumps({"oom": died, "peak_reserved": stats["reserved_bytes.all.peak"],
                      "peak_allocated": stats["allocated_bytes.all.peak"], "retries": stats["num_alloc_retries"]}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4] if len(sys.argv) > 4 else "none")
