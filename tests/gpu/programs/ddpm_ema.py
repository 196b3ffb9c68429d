# SPDX-License-Identifier: Apache-2.0
"""Diffusion (DDPM): U-Net with residual blocks, self-attention at two sizes, an exponential average of the weights, a few samples."""
import argparse
import copy
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"


def embedding(t, dim):
    freqs = torch.exp(-math.log(10000) * torch.arange(dim // 2, device=t.device) / (dim // 2))
    angles = t.float()[:, None] * freqs[None]
    return torch.cat([angles.sin(), angles.cos()], -1)


class Res(nn.Module):
    def __init__(self, a, b, time):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(16, a), nn.Conv2d(a, b, 3, padding=1)
        self.t = nn.Linear(time, 2 * b)
        self.n2, self.c2 = nn.GroupNorm(16, b), nn.Conv2d(b, b, 3, padding=1)
        self.skip = nn.Conv2d(a, b, 1) if a != b else nn.Identity()
        self.drop = nn.Dropout(0.1)

    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x)))
        scale, shift = self.t(F.silu(t))[:, :, None, None].chunk(2, 1)
        return self.skip(x) + self.c2(self.drop(F.silu(self.n2(h) * (1 + scale) + shift)))


class Attention(nn.Module):
    def __init__(self, c, heads=4):
        super().__init__()
        self.heads, self.norm, self.qkv, self.out = heads, nn.GroupNorm(16, c), nn.Conv2d(c, 3 * c, 1), nn.Conv2d(c, c, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, 3, self.heads, c // self.heads, h * w).unbind(1)
        attention = torch.einsum("bhci,bhcj->bhij", q, k).mul((c // self.heads) ** -0.5).softmax(-1)
        return x + self.out(torch.einsum("bhij,bhcj->bhci", attention, v).reshape(b, c, h, w))


class UNet(nn.Module):
    def __init__(self, base=96, mults=(1, 2, 3, 4), attend=(2, 3)):
        super().__init__()
        time, self.base = base * 4, base
        self.time = nn.Sequential(nn.Linear(base, time), nn.SiLU(), nn.Linear(time, time))
        self.first = nn.Conv2d(3, base, 3, padding=1)
        self.down, self.up, widths, c = nn.ModuleList(), nn.ModuleList(), [base], base
        for i, m in enumerate(mults):
            for _ in range(2):
                self.down.append(nn.ModuleList([Res(c, base * m, time), Attention(base * m) if i in attend else nn.Identity()]))
                c = base * m
                widths.append(c)
            if i < len(mults) - 1:
                self.down.append(nn.ModuleList([nn.Conv2d(c, c, 3, 2, 1)]))
                widths.append(c)
        self.mid = nn.ModuleList([Res(c, c, time), Attention(c), Res(c, c, time)])
        for i, m in reversed(list(enumerate(mults))):
            for _ in range(3):
                self.up.append(nn.ModuleList([Res(c + widths.pop(), base * m, time), Attention(base * m) if i in attend else nn.Identity()]))
                c = base * m
            if i:
                self.up.append(nn.ModuleList([nn.Conv2d(c, c, 3, padding=1)]))
        self.last = nn.Sequential(nn.GroupNorm(16, c), nn.SiLU(), nn.Conv2d(c, 3, 3, padding=1))

    def forward(self, x, t):
        t = self.time(embedding(t, self.base))
        x = self.first(x)
        kept = [x]
        for part in self.down:
            x = part[1](part[0](x, t)) if len(part) == 2 else part[0](x)
            kept.append(x)
        x = self.mid[2](self.mid[1](self.mid[0](x, t)), t)
        for part in self.up:
            x = part[1](part[0](torch.cat([x, kept.pop()], 1), t)) if len(part) == 2 else part[0](F.interpolate(x, scale_factor=2, mode="nearest"))
        return self.last(x)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=24)
    args = ap.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    size = 16 if SMALL else 64
    model = UNet(base=32 if SMALL else 96).to(device)
    ema = copy.deepcopy(model).eval().requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
    betas = torch.linspace(1e-4, 0.02, 1000, device=device)
    alphas = torch.cumprod(1 - betas, 0)
    for step in range(5):
        x = torch.randn(args.batch_size, 3, size, size).to(device)
        t = torch.randint(0, 1000, (args.batch_size,), device=device)
        noise = torch.randn_like(x)
        a = alphas[t][:, None, None, None]
        loss = F.mse_loss(model(a.sqrt() * x + (1 - a).sqrt() * noise, t), noise)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():
            for e, p in zip(ema.parameters(), model.parameters()):
                e.lerp_(p, 0.001)
        print(step, loss.item())
    with torch.no_grad():
        x = torch.randn(8, 3, size, size, device=device)
        for i in reversed(range(0, 1000, 250)):
            eps = ema(x, torch.full((8,), i, device=device))
            x = (x - betas[i] / (1 - alphas[i]).sqrt() * eps) / (1 - betas[i]).sqrt()


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
