# SPDX-License-Identifier: Apache-2.0
"""A Llama-like model written out (rotary, grouped queries, SwiGLU), all in bf16, fused AdamW, the loss in chunks."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"


class Norm(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        y = x.float()
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x) * self.weight


def rotary(x, table):
    y = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(y * table[None, :, None]).flatten(3).type_as(x)


class Layer(nn.Module):
    def __init__(self, width, heads, kv, hidden):
        super().__init__()
        self.heads, self.kv, self.dim = heads, kv, width // heads
        self.wq, self.wo = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.wk, self.wv = nn.Linear(width, kv * self.dim, bias=False), nn.Linear(width, kv * self.dim, bias=False)
        self.w1, self.w2, self.w3 = nn.Linear(width, hidden, bias=False), nn.Linear(hidden, width, bias=False), nn.Linear(width, hidden, bias=False)
        self.n1, self.n2 = Norm(width), Norm(width)

    def forward(self, x, table):
        b, t, w = x.shape
        h = self.n1(x)
        q, k, v = self.wq(h).view(b, t, self.heads, -1), self.wk(h).view(b, t, self.kv, -1), self.wv(h).view(b, t, self.kv, -1)
        q, k = rotary(q, table), rotary(k, table)
        k, v = (z.repeat_interleave(self.heads // self.kv, 2) for z in (k, v))
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        x = x + self.wo(y.transpose(1, 2).reshape(b, t, w))
        h = self.n2(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


class Model(nn.Module):
    def __init__(self, vocab, width, layers, heads, kv, hidden, length):
        super().__init__()
        self.embed, self.norm, self.head = nn.Embedding(vocab, width), Norm(width), nn.Linear(width, vocab, bias=False)
        self.layers = nn.ModuleList(Layer(width, heads, kv, hidden) for _ in range(layers))
        dim = width // heads
        angles = torch.outer(torch.arange(length).float(), 1 / 10000 ** (torch.arange(0, dim, 2).float() / dim))
        self.table = torch.polar(torch.ones_like(angles), angles)

    def forward(self, ids):
        x, table = self.embed(ids), self.table[:ids.shape[1]].to(ids.device)
        for layer in self.layers:
            x = layer(x, table)
        return self.norm(x)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=4)
    ap.add_argument("--seq", type=int, default=64 if SMALL else 1536)
    args = ap.parse_args()
    vocab = 500 if SMALL else 50000
    model = Model(vocab, 64, 2, 4, 2, 128, args.seq) if SMALL else Model(vocab, 1152, 16, 18, 6, 3072, args.seq)
    model = model.to(device=device, dtype=torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    for step in range(5):
        ids = torch.randint(0, vocab, (args.batch_size, args.seq + 1), device=device)
        h = model(ids[:, :-1]).flatten(0, 1)
        loss = sum(F.cross_entropy(model.head(part).float(), y, reduction="sum") for part, y in zip(h.chunk(4), ids[:, 1:].flatten().chunk(4))) / len(h)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print(step, loss.item())
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
