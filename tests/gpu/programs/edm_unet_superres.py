# SPDX-License-Identifier: Apache-2.0
"""Small conditional diffusion U-Net (EDM preconditioning, 4x super-resolution at 64 pixels) with EMA swapped in for the validation loss and a short Heun sampling; bf16 autocast."""
import argparse
import copy
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, random_split

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"


class Pairs(Dataset):
    def __init__(self, n, size):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        hr = F.interpolate(torch.randn(1, 3, self.size // 2, self.size // 2, generator=g), scale_factor=2, mode="bilinear")
        lr = F.interpolate(F.avg_pool2d(hr, 4), scale_factor=4, mode="bicubic")
        return hr[0], lr[0]


class FourierEmb(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("freqs", torch.randn(dim // 2) * 16)
        self.mlp = nn.Sequential(nn.Linear(dim, dim * 2), nn.SiLU(), nn.Linear(dim * 2, dim * 2))

    def forward(self, c):
        x = c[:, None] * self.freqs[None] * 2 * torch.pi
        return self.mlp(torch.cat([x.cos(), x.sin()], 1))


class ResBlock(nn.Module):
    def __init__(self, cin, cout, emb, attn=False, heads=4):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(min(32, cin // 4), cin), nn.Conv2d(cin, cout, 3, padding=1)
        self.affine = nn.Linear(emb, 2 * cout)
        self.n2, self.c2 = nn.GroupNorm(min(32, cout // 4), cout), nn.Conv2d(cout, cout, 3, padding=1)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()
        self.drop = nn.Dropout(0.1)
        self.heads = heads
        if attn:
            self.n3, self.qkv, self.proj = nn.GroupNorm(min(32, cout // 4), cout), nn.Conv2d(cout, 3 * cout, 1), nn.Conv2d(cout, cout, 1)
        self.attn = attn

    def forward(self, x, emb):
        h = self.c1(F.silu(self.n1(x)))
        scale, shift = self.affine(emb)[:, :, None, None].chunk(2, 1)
        h = F.silu(self.n2(h) * (1 + scale) + shift)
        x = (self.skip(x) + self.c2(self.drop(h))) * 0.7071
        if self.attn:
            b, c, hh, ww = x.shape
            q, k, v = self.qkv(self.n3(x)).reshape(b, 3, self.heads, c // self.heads, hh * ww).permute(1, 0, 2, 4, 3)
            a = F.scaled_dot_product_attention(q, k, v).transpose(2, 3).reshape(b, c, hh, ww)
            x = (x + self.proj(a)) * 0.7071
        return x


class UNet(nn.Module):
    def __init__(self, ch=128, mult=(1, 2, 2, 3), blocks=2, attn_levels=(2, 3)):
        super().__init__()
        emb = ch * 2
        self.emb = FourierEmb(ch)
        self.inp = nn.Conv2d(6, ch, 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        skips, c = [ch], ch
        for i, m in enumerate(mult):
            for _ in range(blocks):
                self.down.append(ResBlock(c, ch * m, emb, i in attn_levels))
                c = ch * m
                skips.append(c)
            if i < len(mult) - 1:
                self.down.append(nn.Conv2d(c, c, 3, stride=2, padding=1))
                skips.append(c)
        self.mid = nn.ModuleList([ResBlock(c, c, emb, True), ResBlock(c, c, emb)])
        for i, m in reversed(list(enumerate(mult))):
            for _ in range(blocks + 1):
                self.up.append(ResBlock(c + skips.pop(), ch * m, emb, i in attn_levels))
                c = ch * m
            if i > 0:
                self.up.append(nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(c, c, 3, padding=1)))
        self.out = nn.Sequential(nn.GroupNorm(min(32, c // 4), c), nn.SiLU(), nn.Conv2d(c, 3, 3, padding=1))

    def forward(self, x, cond, c_noise):
        emb = F.silu(self.emb(c_noise))
        h = self.inp(torch.cat([x, cond], 1))
        hs = [h]
        for layer in self.down:
            h = layer(h, emb) if isinstance(layer, ResBlock) else layer(h)
            hs.append(h)
        for layer in self.mid:
            h = layer(h, emb)
        for layer in self.up:
            h = layer(torch.cat([h, hs.pop()], 1), emb) if isinstance(layer, ResBlock) else layer(h)
        return self.out(h)


class EDM(nn.Module):
    def __init__(self, net, sigma_data=0.5):
        super().__init__()
        self.net, self.sd = net, sigma_data

    def forward(self, x, sigma, cond):
        s = sigma.view(-1, 1, 1, 1)
        c_skip, c_out, c_in = self.sd ** 2 / (s ** 2 + self.sd ** 2), s * self.sd / (s ** 2 + self.sd ** 2).sqrt(), 1 / (s ** 2 + self.sd ** 2).sqrt()
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            f = self.net(c_in * x, cond, sigma.log() / 4)
        return c_skip * x + c_out * f.float()

    def loss(self, x, cond):
        sigma = (torch.randn(len(x), device=x.device) * 1.2 - 1.2).exp()
        d = self(x + torch.randn_like(x) * sigma.view(-1, 1, 1, 1), sigma, cond)
        weight = (sigma ** 2 + self.sd ** 2) / (sigma * self.sd) ** 2
        return (weight.view(-1, 1, 1, 1) * (d - x) ** 2).mean()

    @torch.no_grad()
    def sample(self, cond, steps):
        t = torch.linspace(80 ** (1 / 7), 0.002 ** (1 / 7), steps, device=cond.device) ** 7
        t = torch.cat([t, t.new_zeros(1)])
        x = torch.randn_like(cond) * t[0]
        for a, b in zip(t[:-1], t[1:]):
            d = (x - self(x, a.expand(len(x)), cond)) / a
            nxt = x + (b - a) * d
            if b > 0:
                d2 = (nxt - self(nxt, b.expand(len(x)), cond)) / b
                nxt = x + (b - a) * (d + d2) / 2
            x = nxt
        return x


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--ema", type=float, default=0.999)
    args = ap.parse_args()
    torch.manual_seed(0)
    if SMALL:
        args.batch_size = min(args.batch_size, 2)
    size = 16 if SMALL else 64
    n_train, n_val = args.batch_size * (2 if SMALL else 8), args.batch_size * 2
    train_set, val_set = random_split(Pairs(n_train + n_val, size), [n_train, n_val])
    train = DataLoader(train_set, args.batch_size, shuffle=True, num_workers=0 if SMALL else 6)
    val = DataLoader(val_set, args.batch_size, num_workers=0 if SMALL else 2)
    model = EDM(UNet(16, (1, 2), 1, (1,)) if SMALL else UNet()).to(device)
    ema = copy.deepcopy(model).eval().requires_grad_(False)
    opt = torch.optim.Adam(model.parameters(), lr=2e-4, betas=(0.9, 0.99))
    for epoch in range(args.epochs):
        model.train()
        for hr, lr in train:
            hr, lr = hr.to(device), lr.to(device)
            opt.zero_grad(set_to_none=True)
            loss = model.loss(hr, lr)
            loss.backward()
            for p in model.parameters():
                if p.grad is not None:
                    torch.nan_to_num(p.grad, nan=0, posinf=1e5, neginf=-1e5, out=p.grad)
            opt.step()
            for pe, pm in zip(ema.parameters(), model.parameters()):
                pe.copy_(pm.detach().lerp(pe, args.ema))
        vals = []
        with torch.no_grad():
            for hr, lr in val:
                vals.append(ema.loss(hr.to(device), lr.to(device)).item())
        hr, lr = next(iter(val))
        sr = ema.sample(lr.to(device)[:16], 3 if SMALL else 8)
        print(f"epoch {epoch} train {loss.item():.4f} val(ema) {sum(vals) / len(vals):.4f} psnr {-10 * torch.log10(F.mse_loss(sr.cpu(), hr[:16])).item():.2f}")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
