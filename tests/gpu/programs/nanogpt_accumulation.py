# SPDX-License-Identifier: Apache-2.0
"""A GPT in one file: flash attention through SDPA, tied weights, bf16 autocast, gradient accumulation, cosine schedule."""
import argparse
import math
import os
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn import functional as F

SMALL = os.environ.get("SMALL") == "1"


@dataclass
class Config:
    vocab: int = 50304
    block: int = 64 if SMALL else 1024
    layers: int = 2 if SMALL else 10
    heads: int = 10
    width: int = 640
    dropout: float = 0.1


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.ln1, self.ln2 = nn.LayerNorm(c.width), nn.LayerNorm(c.width)
        self.qkv, self.proj = nn.Linear(c.width, 3 * c.width), nn.Linear(c.width, c.width)
        self.fc, self.fc2 = nn.Linear(c.width, 4 * c.width), nn.Linear(4 * c.width, c.width)
        self.drop = nn.Dropout(c.dropout)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.ln1(x)).split(w, 2)
        q, k, v = (z.view(b, t, self.c.heads, -1).transpose(1, 2) for z in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.c.dropout if self.training else 0.0)
        x = x + self.drop(self.proj(y.transpose(1, 2).reshape(b, t, w)))
        return x + self.drop(self.fc2(F.gelu(self.fc(self.ln2(x)), approximate="tanh")))


class GPT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(c.vocab, c.width), nn.Embedding(c.block, c.width)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.ln = nn.LayerNorm(c.width)
        self.head = nn.Linear(c.width, c.vocab, bias=False)
        self.wte.weight = self.head.weight

    def forward(self, ids, targets=None):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln(x))
        return logits, None if targets is None else F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=10)
    ap.add_argument("--accumulate", type=int, default=4)
    args = ap.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    c = Config()
    model = GPT(c).to(device)
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=6e-4, betas=(0.9, 0.95), fused=device == "cuda")
    text = torch.randint(0, c.vocab, (100_000,))

    def batch():
        at = torch.randint(len(text) - c.block - 1, (args.batch_size,))
        x = torch.stack([text[i:i + c.block] for i in at])
        y = torch.stack([text[i + 1:i + 1 + c.block] for i in at])
        return x.to(device), y.to(device)

    for step in range(5):
        for group in optimizer.param_groups:
            group["lr"] = 6e-4 * 0.5 * (1 + math.cos(math.pi * step / 5))
        for _ in range(args.accumulate):
            x, y = batch()
            with torch.autocast(device, dtype=torch.bfloat16):
                _, loss = model(x, y)
            (loss / args.accumulate).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print(step, loss.item())
    model.eval()
    with torch.no_grad():
        print("validation", sum(model(*batch())[1].item() for _ in range(2)) / 2)
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
