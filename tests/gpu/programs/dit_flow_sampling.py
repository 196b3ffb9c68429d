# SPDX-License-Identifier: Apache-2.0
"""Flow matching with a diffusion transformer on latents; the EMA model samples with guidance after every epoch."""
import argparse
import copy
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cuda.matmul.allow_tf32 = True


def modulate(x, shift, scale):
    return x * (1 + scale[:, None]) + shift[:, None]


class DiTBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(dim, elementwise_affine=False, eps=1e-6)
        self.norm2 = nn.LayerNorm(dim, elementwise_affine=False, eps=1e-6)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(approximate="tanh"), nn.Linear(4 * dim, dim))
        self.ada = nn.Sequential(nn.SiLU(), nn.Linear(dim, 6 * dim))
        nn.init.zeros_(self.ada[-1].weight)
        nn.init.zeros_(self.ada[-1].bias)

    def attention(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))

    def forward(self, x, c):
        s1, c1, g1, s2, c2, g2 = self.ada(c).chunk(6, dim=1)
        x = x + g1.unsqueeze(1) * self.attention(modulate(self.norm1(x), s1, c1))
        return x + g2.unsqueeze(1) * self.mlp(modulate(self.norm2(x), s2, c2))


class DiT(nn.Module):
    def __init__(self, side=32, channels=4, patch=2, dim=384, depth=12, heads=6, classes=1000):
        super().__init__()
        self.side, self.channels, self.patch, self.classes = side, channels, patch, classes
        self.embed = nn.Conv2d(channels, dim, patch, patch)
        self.pos = nn.Parameter(torch.randn(1, (side // patch) ** 2, dim) * 0.02)
        self.time = nn.Sequential(nn.Linear(256, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.label = nn.Embedding(classes + 1, dim)
        self.blocks = nn.ModuleList(DiTBlock(dim, heads) for _ in range(depth))
        self.final = nn.LayerNorm(dim, elementwise_affine=False)
        self.out = nn.Linear(dim, patch * patch * channels)
        nn.init.zeros_(self.out.weight)

    def forward(self, x, t, y):
        freqs = torch.exp(-torch.arange(128, device=x.device) * 9.21 / 128)
        a = t[:, None] * 1000 * freqs
        c = self.time(torch.cat([a.cos(), a.sin()], -1)) + self.label(y)
        h = self.embed(x).flatten(2).transpose(1, 2) + self.pos
        for block in self.blocks:
            h = block(h, c)
        h = self.out(self.final(h))
        n = self.side // self.patch
        return h.view(-1, n, n, self.patch, self.patch, self.channels).permute(0, 5, 1, 3, 2, 4).reshape(-1, self.channels, self.side, self.side)


def toy_decoder():
    """Stands for the frozen decoder of the autoencoder: latents to pictures eight times as wide."""
    w = 8 if SMALL else 128
    layers = [nn.Conv2d(4, w, 3, padding=1)]
    for _ in range(3):
        layers += [nn.GroupNorm(4, w), nn.SiLU(), nn.Upsample(scale_factor=2), nn.Conv2d(w, w, 3, padding=1)]
    return nn.Sequential(*layers, nn.Conv2d(w, 3, 3, padding=1)).requires_grad_(False)


@torch.no_grad()
def sample(model, decoder, n, steps=10, cfg=4.0):
    model.eval()
    x = torch.randn(n, model.channels, model.side, model.side, device=device)
    y = torch.randint(0, model.classes, (n,), device=device)
    both = torch.cat([y, torch.full_like(y, model.classes)])
    for i in range(steps):
        t = torch.full((2 * n,), i / steps, device=device)
        with torch.autocast(device, torch.bfloat16):
            cond, uncond = model(torch.cat([x, x]), t, both).chunk(2)
        x = x + (uncond + cfg * (cond - uncond)).float() / steps
    return decoder(x).clamp(-1, 1).mul(127.5).add(128).to(torch.uint8).cpu()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=96)
    p.add_argument("--samples", type=int, default=32)
    a = p.parse_args()
    torch.manual_seed(0)
    if SMALL:
        a.batch_size, a.samples = 4, 2
    side = 8 if SMALL else 32
    model = DiT(side=side, dim=32, depth=2, heads=2, classes=10) if SMALL else DiT(side=side)
    model.to(device)
    ema = copy.deepcopy(model).requires_grad_(False)
    decoder = toy_decoder().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0)
    n = a.batch_size * 8
    loader = DataLoader(TensorDataset(torch.randn(n, 4, side, side), torch.randint(0, model.classes, (n,))), a.batch_size, shuffle=True, drop_last=True)
    for epoch in range(2):
        model.train()
        for x1, y in loader:
            x1, y = x1.to(device), y.to(device)
            y = torch.where(torch.rand(len(y), device=device) < 0.1, model.classes, y)
            x0, t = torch.randn_like(x1), torch.sigmoid(torch.randn(len(x1), device=device))
            xt = (1 - t.view(-1, 1, 1, 1)) * x0 + t.view(-1, 1, 1, 1) * x1
            with torch.autocast(device, torch.bfloat16):
                v = model(xt, t, y)
            loss = F.mse_loss(v.float(), x1 - x0)
            opt.zero_grad()
            loss.backward()
            opt.step()
            with torch.no_grad():
                torch._foreach_lerp_(list(ema.parameters()), list(model.parameters()), 0.01)
        pictures = sample(ema, decoder, a.samples)
        print(epoch, loss.item(), pictures.shape, pictures.float().mean().item())
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
