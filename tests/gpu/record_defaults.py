# SPDX-License-Identifier: Apache-2.0
"""A snapshot as torch records it by default (stacks of Python and C++ for every entry): a small transformer trained
in bfloat16 on sequences of six lengths, until the ring of EVENTS entries has turned over.
`python3 record_defaults.py FILE.pickle [EVENTS]`; only torch is needed."""

import random
import sys
import time

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.before(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-1, -2) / 8).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.between(x))


class Model(nn.Module):
    def __init__(self, words=8000, width=384, layers=8, heads=6):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)

    def forward(self, x, y):
        hidden = self.embed(x)
        for block in self.blocks:
            hidden = block(hidden)
        return nn.functional.cross_entropy(self.head(self.norm(hidden)).flatten(0, 1), y.flatten())


def main():
    path, events = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    random.seed(3)
    torch.manual_seed(3)
    torch.cuda.memory._record_memory_history(max_entries=events)
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    begin, steps, losses = time.time(), 0, []
    while True:
        length, batch = random.choice([96, 128, 160, 200, 256, 304]), random.choice([4, 6, 8])
        tokens = torch.randint(0, 8000, (batch, length + 1), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
        steps += 1
        if steps % 20 == 0:
            stats = torch.cuda.memory_stats()
            if stats["allocation.all.allocated"] + 2 * stats["allocation.all.freed"] > 1.15 * events:
                break
    torch.cuda.synchronize()
    print(f"torch {torch.__version__}, {steps} steps in {time.time() - begin:.1f} s")
    torch.cuda.memory._dump_snapshot(path)


main()
