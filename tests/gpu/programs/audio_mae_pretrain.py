# SPDX-License-Identifier: Apache-2.0
"""Masked autoencoder pre-training on spectrograms (AudioMAE-like, hand-written ViT, 80 % masked), bf16 autocast, accumulation of 2, half-cycle cosine; no validation."""
import argparse
import math
import os

import numpy as np
import torch
import torch.nn as nn
from timm.models.vision_transformer import Block
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"


class Spectrograms(Dataset):
    def __init__(self, n, frames, mels):
        self.n, self.shape = n, (1, frames, mels)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.from_numpy(np.random.default_rng(i).standard_normal(self.shape, dtype=np.float32))


def sincos(d, h, w):
    def one(dim, pos):
        omega = 1.0 / 10000 ** (np.arange(dim // 2) / (dim / 2.0))
        out = np.einsum("m,d->md", pos.reshape(-1), omega)
        return np.concatenate([np.sin(out), np.cos(out)], axis=1)
    gh, gw = np.meshgrid(np.arange(h), np.arange(w), indexing="ij")
    pos = np.concatenate([one(d // 2, gh), one(d // 2, gw)], axis=1)
    return torch.from_numpy(np.concatenate([np.zeros((1, d)), pos])).float().unsqueeze(0)


class SpecMAE(nn.Module):
    def __init__(self, frames, mels, patch=16, dim=768, depth=12, heads=12, ddim=512, ddepth=8, dheads=16):
        super().__init__()
        self.patch, self.grid = patch, (frames // patch, mels // patch)
        self.embed = nn.Conv2d(1, dim, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.register_buffer("pos", sincos(dim, *self.grid))
        self.blocks = nn.ModuleList([Block(dim, heads, 4, qkv_bias=True) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.to_dec = nn.Linear(dim, ddim)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, ddim))
        self.register_buffer("dpos", sincos(ddim, *self.grid))
        self.dblocks = nn.ModuleList([Block(ddim, dheads, 4, qkv_bias=True) for _ in range(ddepth)])
        self.dnorm = nn.LayerNorm(ddim)
        self.pred = nn.Linear(ddim, patch * patch)
        nn.init.normal_(self.cls, std=0.02)
        nn.init.normal_(self.mask_token, std=0.02)

    def patchify(self, x):
        p, (h, w) = self.patch, self.grid
        return x.reshape(-1, h, p, w, p).permute(0, 1, 3, 2, 4).reshape(-1, h * w, p * p)

    def random_masking(self, x, ratio):
        n, l, d = x.shape
        keep = int(l * (1 - ratio))
        shuffle = torch.rand(n, l, device=x.device).argsort(1)
        restore = shuffle.argsort(1)
        kept = torch.gather(x, 1, shuffle[:, :keep, None].expand(-1, -1, d))
        mask = torch.ones(n, l, device=x.device)
        mask[:, :keep] = 0
        return kept, torch.gather(mask, 1, restore), restore

    def forward(self, spec, ratio=0.8):
        x = self.embed(spec).flatten(2).transpose(1, 2) + self.pos[:, 1:]
        x, mask, restore = self.random_masking(x, ratio)
        x = torch.cat([(self.cls + self.pos[:, :1]).expand(len(x), -1, -1), x], 1)
        for b in self.blocks:
            x = b(x)
        x = self.to_dec(self.norm(x))
        tokens = self.mask_token.expand(len(x), restore.shape[1] + 1 - x.shape[1], -1)
        y = torch.cat([x[:, 1:], tokens.to(x.dtype)], 1)
        y = torch.gather(y, 1, restore[..., None].expand(-1, -1, y.shape[2]))
        y = torch.cat([x[:, :1], y], 1) + self.dpos
        for b in self.dblocks:
            y = b(y)
        pred = self.pred(self.dnorm(y))[:, 1:]
        target = self.patchify(spec)
        target = (target - target.mean(-1, keepdim=True)) / (target.var(-1, keepdim=True) + 1e-6).sqrt()
        loss = ((pred.float() - target) ** 2).mean(-1)
        return (loss * mask).sum() / mask.sum()


def adjust_lr(optimizer, progress, args):
    if progress < args.warmup_epochs:
        lr = args.lr * progress / args.warmup_epochs
    else:
        lr = args.lr * 0.5 * (1 + math.cos(math.pi * (progress - args.warmup_epochs) / (args.epochs - args.warmup_epochs)))
    for group in optimizer.param_groups:
        group["lr"] = lr
    return lr


def main():
    ap = argparse.ArgumentParser("AudioMAE pre-training")
    ap.add_argument("--batch-size", default=32, type=int)
    ap.add_argument("--accum-iter", default=2, type=int)
    ap.add_argument("--epochs", default=2, type=int)
    ap.add_argument("--warmup-epochs", default=0.5, type=float)
    ap.add_argument("--lr", default=2e-4, type=float)
    ap.add_argument("--mask-ratio", default=0.8, type=float)
    args = ap.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    if SMALL:
        args.batch_size = min(args.batch_size, 2)
    frames, mels = (64, 32) if SMALL else (1024, 128)
    model = SpecMAE(frames, mels, **(dict(dim=64, depth=2, heads=4, ddim=32, ddepth=1, dheads=4) if SMALL else {})).to(device)
    wd = [p for n, p in model.named_parameters() if p.ndim > 1]
    nowd = [p for n, p in model.named_parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": nowd, "weight_decay": 0.0}, {"params": wd, "weight_decay": 0.05}], lr=args.lr, betas=(0.9, 0.95))
    loader = DataLoader(Spectrograms(args.batch_size * (4 if SMALL else 16), frames, mels), args.batch_size, shuffle=True, drop_last=True, num_workers=0 if SMALL else 6, pin_memory=device == "cuda")
    for epoch in range(args.epochs):
        optimizer.zero_grad()
        for it, spec in enumerate(loader):
            if it % args.accum_iter == 0:
                lr = adjust_lr(optimizer, it / len(loader) + epoch, args)
            spec = spec.to(device, non_blocking=True)
            with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
                loss = model(spec, args.mask_ratio)
            (loss / args.accum_iter).backward()
            if (it + 1) % args.accum_iter == 0:
                optimizer.step()
                optimizer.zero_grad()
        print(f"epoch {epoch} loss {loss.item():.4f} lr {lr:.2e}")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
