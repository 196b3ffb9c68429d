# SPDX-License-Identifier: Apache-2.0
"""A mixture of experts by hand: top-2 routing with a fixed capacity, index_add to put the tokens back, auxiliary loss; bf16 autocast."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
torch.manual_seed(0)


class Experts(nn.Module):
    def __init__(self, width, hidden, experts, k=2, factor=1.25):
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.w1 = nn.Parameter(torch.randn(experts, width, hidden) * width ** -0.5)
        self.w3 = nn.Parameter(torch.randn(experts, width, hidden) * width ** -0.5)
        self.w2 = nn.Parameter(torch.randn(experts, hidden, width) * hidden ** -0.5)
        self.experts, self.k, self.factor = experts, k, factor

    def forward(self, x):
        shape, x = x.shape, x.reshape(-1, x.shape[-1])
        n = len(x)
        probs = self.router(x.float()).softmax(-1)
        weight, chosen = probs.topk(self.k, -1)
        weight = weight / weight.sum(-1, keepdim=True)
        capacity = int(self.factor * n * self.k / self.experts)
        gate = torch.zeros_like(probs).scatter(1, chosen, weight)
        weights, tokens = gate.t().topk(capacity, dim=1)  # every expert takes its best tokens, always as many
        inside = x[tokens]
        h = F.silu(torch.bmm(inside, self.w1.to(inside.dtype))) * torch.bmm(inside, self.w3.to(inside.dtype))
        out = torch.bmm(h, self.w2.to(h.dtype)) * weights[..., None].to(h.dtype)
        y = torch.zeros_like(x).index_add(0, tokens.reshape(-1), out.reshape(-1, x.shape[-1]).to(x.dtype))
        balance = self.experts * (probs.mean(0) * (gate > 0).float().mean(0)).sum()
        return y.reshape(shape), balance


class Layer(nn.Module):
    def __init__(self, width, heads, hidden, experts):
        super().__init__()
        self.n1, self.n2, self.heads = nn.RMSNorm(width), nn.RMSNorm(width), heads
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.moe = Experts(width, hidden, experts)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, w))
        y, balance = self.moe(self.n2(x))
        return x + y, balance


class Net(nn.Module):
    def __init__(self, vocab, width, layers, experts):
        super().__init__()
        self.embed, self.norm, self.head = nn.Embedding(vocab, width), nn.RMSNorm(width), nn.Linear(width, vocab, bias=False)
        self.layers = nn.ModuleList(Layer(width, 8, width * 2, experts) for _ in range(layers))

    def forward(self, ids):
        x, total = self.embed(ids), 0.0
        for layer in self.layers:
            x, balance = layer(x)
            total = total + balance
        return self.head(self.norm(x)), total / len(self.layers)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=8)
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    vocab, length = (300, 32) if SMALL else (32000, 768)
    model = Net(vocab, 64, 2, 4).to(device) if SMALL else Net(vocab, 512, 6, 16).to(device)
    print(sum(p.numel() for p in model.parameters()) / 1e6, "M")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for step in range(5):
        ids = torch.randint(0, vocab, (args.batch_size, length + 1), device=device)
        with torch.autocast(device, dtype=torch.bfloat16):
            logits, balance = model(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()) + 0.01 * balance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, float(loss), float(balance))
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
