# SPDX-License-Identifier: Apache-2.0
"""Rotary SwiGLU language model: tied embeddings, bf16, perplexity by chunks and a greedy sample (no cache) during validation."""
import argparse
import dataclasses
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
amp = torch.autocast(device_type=device, dtype=torch.bfloat16)


@dataclasses.dataclass
class Config:
    vocab: int = 50304
    block: int = 512
    layers: int = 10
    heads: int = 12
    dim: int = 768


CFG = Config(vocab=500, block=64, layers=2, heads=4, dim=64) if SMALL else Config()


def rope(x):
    b, h, t, d = x.shape
    inv = 1.0 / (10000 ** (torch.arange(0, d, 2, device=x.device).float() / d))
    f = torch.outer(torch.arange(t, device=x.device).float(), inv)
    cos, sin = f.cos().to(x.dtype), f.sin().to(x.dtype)
    x1, x2 = x[..., ::2], x[..., 1::2]
    return torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1).flatten(-2)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.ln1, self.ln2 = nn.RMSNorm(c.dim), nn.RMSNorm(c.dim)
        self.qkv = nn.Linear(c.dim, 3 * c.dim, bias=False)
        self.proj = nn.Linear(c.dim, c.dim, bias=False)
        hidden = int(8 * c.dim / 3 / 64 + 1) * 64
        self.w1, self.w2, self.w3 = nn.Linear(c.dim, hidden, bias=False), nn.Linear(hidden, c.dim, bias=False), nn.Linear(c.dim, hidden, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.c.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(rope(q), rope(k), v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        h = self.ln2(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


class LM(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.emb = nn.Embedding(c.vocab, c.dim)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.norm = nn.RMSNorm(c.dim)
        self.head = nn.Linear(c.dim, c.vocab, bias=False)
        self.apply(lambda m: nn.init.normal_(m.weight, std=0.02) if isinstance(m, (nn.Linear, nn.Embedding)) else None)
        self.head.weight = self.emb.weight

    def hidden(self, idx):
        x = self.emb(idx)
        for b in self.blocks:
            x = b(x)
        return self.norm(x)

    def forward(self, idx, targets=None):
        logits = self.head(self.hidden(idx))
        if targets is None:
            return logits
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


tokens = torch.randint(0, CFG.vocab, (200_000 if not SMALL else 5000,), generator=torch.Generator().manual_seed(0))
split = int(0.9 * len(tokens))


def get_batch(part, n):
    data = tokens[:split] if part == "train" else tokens[split:]
    ix = torch.randint(len(data) - CFG.block - 1, (n,))
    x = torch.stack([data[i:i + CFG.block] for i in ix])
    y = torch.stack([data[i + 1:i + 1 + CFG.block] for i in ix])
    return x.to(device), y.to(device)


@torch.no_grad()
def perplexity(model, n, iters=4, chunk=128):
    model.eval()
    nll, count = torch.zeros((), device=device), 0
    for _ in range(iters):
        x, y = get_batch("val", n)
        with amp:
            h = model.hidden(x)
            for i in range(0, CFG.block, chunk):
                logits = model.head(h[:, i:i + chunk])
                nll += F.cross_entropy(logits.float().flatten(0, 1), y[:, i:i + chunk].flatten(), reduction="sum")
        count += y.numel()
    model.train()
    return math.exp(min(20, (nll / count).item()))


@torch.no_grad()
def generate(model, prompt, new=16):
    model.eval()
    for _ in range(new):
        with amp:
            logits = model(prompt[:, -CFG.block:])
        prompt = torch.cat([prompt, logits[:, -1].argmax(-1, keepdim=True)], 1)
    model.train()
    return prompt


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=16)
    args = ap.parse_args()
    torch.manual_seed(1337)
    torch.set_float32_matmul_precision("high")
    model = LM(CFG).to(device)
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=6e-4, betas=(0.9, 0.95), fused=device == "cuda")
    for step in range(12):
        if step % 6 == 0 or step == 11:
            print(step, "val ppl", perplexity(model, args.batch_size))
        x, y = get_batch("train", args.batch_size)
        with amp:
            loss = model(x, y)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 4 == 0:
            print(f"step {step} loss {loss.item():.4f} norm {norm.item():.2f}")
    x, _ = get_batch("val", 8)
    print(generate(model, x[:, : CFG.block // 2])[:, -16:].tolist()[0])


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
