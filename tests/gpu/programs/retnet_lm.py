"""Retentive network language model on generated token text; bf16 autocast, activation checkpointing, gradient accumulation."""
import math
import os
import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    vocab: int = int(os.environ.get("VOCAB", 32000))
    dim: int = int(os.environ.get("DIM", 1024))
    heads: int = int(os.environ.get("HEADS", 8))
    layers: int = int(os.environ.get("LAYERS", 12))
    context: int = int(os.environ.get("CONTEXT", 1024))
    batch: int = int(os.environ.get("BATCH", 8))
    accumulate: int = 2
    updates: int = int(os.environ.get("UPDATES", 60))
    eval_every: int = int(os.environ.get("EVAL_EVERY", 20))
    lr: float = 6e-4


class TokenWindows(Dataset):
    def __init__(self, cfg, tokens, seed):
        g = torch.Generator().manual_seed(seed)
        # word-like text: a random walk over the vocabulary with many repeats
        jump = torch.randint(0, cfg.vocab, (tokens,), generator=g)
        keep = torch.rand(tokens, generator=g) < 0.7
        self.data = torch.where(keep, (torch.arange(tokens) * 17) % (cfg.vocab // 8), jump)
        self.context = cfg.context

    def __len__(self):
        return (len(self.data) - 1) // self.context

    def __getitem__(self, i):
        chunk = self.data[i * self.context:(i + 1) * self.context + 1]
        return chunk[:-1], chunk[1:]


class RMSNorm(nn.Module):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(d)), eps

    def forward(self, x):
        x32 = x.float()
        return (x32 * torch.rsqrt(x32.pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x) * self.weight


class Retention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        d, self.h = cfg.dim, cfg.heads
        self.qkvg = nn.Linear(d, 4 * d, bias=False)
        self.out = nn.Linear(d, d, bias=False)
        self.group_norm = nn.GroupNorm(cfg.heads, d)

    def forward(self, x, decay):
        b, t, d = x.shape
        q, k, v, g = self.qkvg(x).chunk(4, -1)
        split = lambda z: z.view(b, t, self.h, -1).transpose(1, 2)
        q, k, v = split(q), split(k), split(v)
        att = (q @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1]) * decay
        att = att / att.detach().abs().sum(-1, keepdim=True).clamp(min=1)
        y = (att.to(v.dtype) @ v).transpose(1, 2).reshape(b * t, d)
        y = self.group_norm(y).view(b, t, d)
        return self.out(F.silu(g) * y)


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.n1, self.n2 = RMSNorm(cfg.dim), RMSNorm(cfg.dim)
        self.ret = Retention(cfg)
        self.gate, self.up = nn.Linear(cfg.dim, 2 * cfg.dim, bias=False), nn.Linear(cfg.dim, 2 * cfg.dim, bias=False)
        self.down = nn.Linear(2 * cfg.dim, cfg.dim, bias=False)

    def forward(self, x, decay):
        x = x + self.ret(self.n1(x), decay)
        h = self.n2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class RetNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(cfg.vocab, cfg.dim)
        self.blocks = nn.ModuleList([Block(cfg) for _ in range(cfg.layers)])
        self.norm = RMSNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.vocab, bias=False)
        self.head.weight = self.embed.weight
        gamma = 1 - 2 ** (-5 - torch.arange(cfg.heads).float())
        n = torch.arange(cfg.context).float()
        gap = n[:, None] - n[None]
        decay = torch.where(gap >= 0, gamma[:, None, None] ** gap.clamp(min=0)[None], torch.zeros(()))
        self.register_buffer("decay", decay, persistent=False)
        for p in self.parameters():
            if p.ndim > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids, targets=None):
        x = self.embed(ids)
        decay = self.decay[:, :ids.shape[1], :ids.shape[1]]
        for blk in self.blocks:
            if self.training:
                x = checkpoint(blk, x, decay, use_reentrant=False)
            else:
                x = blk(x, decay)
        logits = self.head(self.norm(x))
        if targets is None:
            return logits
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


def cycle(loader):
    while True:
        yield from loader


def lr_at(step, cfg):
    if step < 10:
        return cfg.lr * (step + 1) / 10
    return cfg.lr * 0.5 * (1 + math.cos(math.pi * step / cfg.updates))


def main():
    cfg = Config()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    train = cycle(DataLoader(TokenWindows(cfg, 400 * cfg.context + 1, 1), batch_size=cfg.batch, shuffle=True, drop_last=True))
    val = DataLoader(TokenWindows(cfg, 24 * cfg.context + 1, 2), batch_size=cfg.batch)
    model = RetNet(cfg).to(device)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f}M parameters")
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, betas=(0.9, 0.95), weight_decay=0.1, foreach=True)
    start = time.time()
    for update in range(cfg.updates):
        for group in optimizer.param_groups:
            group["lr"] = lr_at(update, cfg)
        total = 0.0
        for _ in range(cfg.accumulate):
            x, y = next(train)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                loss = model(x.to(device), y.to(device)) / cfg.accumulate
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if (update + 1) % cfg.eval_every == 0:
            model.eval()
            with torch.no_grad(), torch.autocast(device.type, dtype=torch.bfloat16):
                v = sum(model(x.to(device), y.to(device)).item() for x, y in val) / len(val)
            model.train()
            print(f"update {update + 1} train {total:.3f} val {v:.3f} ppl {math.exp(min(v, 20)):.1f} {time.time() - start:.0f}s", flush=True)


main()
if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
