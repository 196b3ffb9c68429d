# SPDX-License-Identifier: Apache-2.0
"""An Evoformer-like pair network, every block under torch.utils.checkpoint by hand; bf16 autocast."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

SMALL = os.environ.get("SMALL") == "1"


class Triangle(nn.Module):
    def __init__(self, c, outgoing):
        super().__init__()
        self.norm, self.out_norm, self.outgoing = nn.LayerNorm(c), nn.LayerNorm(c), outgoing
        self.ab, self.gates, self.gate, self.out = nn.Linear(c, 2 * c), nn.Linear(c, 2 * c), nn.Linear(c, c), nn.Linear(c, c)

    def forward(self, z):
        z = self.norm(z)
        a, b = (self.ab(z) * self.gates(z).sigmoid()).chunk(2, -1)
        x = torch.einsum("bikc,bjkc->bijc", a, b) if self.outgoing else torch.einsum("bkic,bkjc->bijc", a, b)
        return self.out(self.out_norm(x)) * self.gate(z).sigmoid()


class RowAttention(nn.Module):
    def __init__(self, c, heads=4):
        super().__init__()
        self.norm, self.heads = nn.LayerNorm(c), heads
        self.qkv, self.bias, self.out = nn.Linear(c, 3 * c, bias=False), nn.Linear(c, heads, bias=False), nn.Linear(c, c)

    def forward(self, z):
        b, n, _, c = z.shape
        z = self.norm(z)
        q, k, v = self.qkv(z).view(b, n, n, 3, self.heads, -1).permute(3, 0, 1, 4, 2, 5)
        bias = self.bias(z).permute(0, 3, 1, 2)[:, None]
        a = (q @ k.transpose(-1, -2) * (c // self.heads) ** -0.5 + bias).softmax(-1)
        return self.out((a.to(v.dtype) @ v).transpose(2, 3).reshape(b, n, n, c))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.out, self.into, self.row = Triangle(c, True), Triangle(c, False), RowAttention(c)
        self.mlp = nn.Sequential(nn.LayerNorm(c), nn.Linear(c, 4 * c), nn.ReLU(), nn.Linear(4 * c, c))

    def forward(self, z):
        z = z + F.dropout(self.out(z), 0.1, self.training)
        z = z + F.dropout(self.into(z), 0.1, self.training)
        z = z + self.row(z)
        return z + self.mlp(z)


class PairNet(nn.Module):
    def __init__(self, c, layers):
        super().__init__()
        self.left, self.right, self.relative = nn.Embedding(21, c), nn.Embedding(21, c), nn.Embedding(65, c)
        self.blocks = nn.ModuleList(Block(c) for _ in range(layers))
        self.head = nn.Linear(c, 64)

    def forward(self, seq):
        at = torch.arange(seq.shape[1], device=seq.device)
        z = self.left(seq)[:, :, None] + self.right(seq)[:, None] + self.relative((at[:, None] - at[None]).clamp(-32, 32) + 32)
        for i, block in enumerate(self.blocks):
            z = checkpoint(block, z, use_reentrant=False) if i % 4 else checkpoint(block, z, use_reentrant=True)
        return self.head(z + z.transpose(1, 2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    n = 24 if SMALL else 256
    model = PairNet(32 if SMALL else 128, 2 if SMALL else 8).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(4):
        seq = torch.randint(0, 21, (args.batch_size, n), device=device)
        bins = torch.randint(0, 64, (args.batch_size, n, n), device=device)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(seq).float().permute(0, 3, 1, 2), bins)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        print(step, loss.item())


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
