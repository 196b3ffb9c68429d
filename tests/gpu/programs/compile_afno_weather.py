"""FourCastNet-like AFNO forecast model on a lat-lon grid, torch.compile, bf16 autocast, two-step finetuning after pretraining."""
import argparse
import os
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--img", type=int, nargs=2, default=[180, 360])
parser.add_argument("--patch", type=int, default=6)
parser.add_argument("--chans", type=int, default=20)
parser.add_argument("--embed", type=int, default=512)
parser.add_argument("--depth", type=int, default=8)
parser.add_argument("--blocks", type=int, default=8)
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--years", type=int, default=80, help="number of time steps in the archive")
parser.add_argument("--no_compile", action="store_true")
params = parser.parse_args()
torch.manual_seed(0)
np.random.seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class AFNO2D(nn.Module):
    def __init__(self, dim, blocks, sparsity=0.01):
        super().__init__()
        self.blocks, self.bs, self.sparsity = blocks, dim // blocks, sparsity
        s = 0.02
        self.w1, self.b1 = nn.Parameter(s * torch.randn(2, blocks, self.bs, self.bs)), nn.Parameter(s * torch.randn(2, blocks, self.bs))
        self.w2, self.b2 = nn.Parameter(s * torch.randn(2, blocks, self.bs, self.bs)), nn.Parameter(s * torch.randn(2, blocks, self.bs))

    def mul(self, xr, xi, w, b):
        e = lambda x, y: torch.einsum("...bi,bio->...bo", x, y)
        return e(xr, w[0]) - e(xi, w[1]) + b[0], e(xi, w[0]) + e(xr, w[1]) + b[1]

    @torch.compiler.disable  # complex FFTs are left to eager
    def forward(self, x):
        bias, dtype = x, x.dtype
        B, H, W, C = x.shape
        x = torch.fft.rfft2(x.float(), dim=(1, 2), norm="ortho").reshape(B, H, W // 2 + 1, self.blocks, self.bs)
        r, i = self.mul(x.real, x.imag, self.w1, self.b1)
        r, i = self.mul(F.relu(r), F.relu(i), self.w2, self.b2)
        x = F.softshrink(torch.stack([r, i], -1).float(), self.sparsity)
        x = torch.view_as_complex(x.contiguous()).reshape(B, H, W // 2 + 1, C)
        return torch.fft.irfft2(x, s=(H, W), dim=(1, 2), norm="ortho").to(dtype) + bias


class Block(nn.Module):
    def __init__(self, dim, blocks, drop=0.0):
        super().__init__()
        self.norm1, self.filter, self.norm2 = nn.LayerNorm(dim), AFNO2D(dim, blocks), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Dropout(drop), nn.Linear(4 * dim, dim), nn.Dropout(drop))

    def forward(self, x):
        residual = x
        x = self.filter(self.norm1(x)) + residual
        return x + self.mlp(self.norm2(x))


class AFNONet(nn.Module):
    def __init__(self):
        super().__init__()
        self.h, self.w, self.p = params.img[0] // params.patch, params.img[1] // params.patch, params.patch
        self.patch_embed = nn.Conv2d(params.chans, params.embed, self.p, self.p)
        self.pos_embed = nn.Parameter(torch.zeros(1, self.h, self.w, params.embed))
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        self.layers = nn.ModuleList([Block(params.embed, params.blocks) for _ in range(params.depth)])
        self.head = nn.Linear(params.embed, params.chans * self.p * self.p, bias=False)

    def forward(self, x):
        x = self.patch_embed(x).permute(0, 2, 3, 1) + self.pos_embed
        for blk in self.layers:
            x = blk(x)
        x = self.head(x).view(x.shape[0], self.h, self.w, self.p, self.p, params.chans)
        return x.permute(0, 5, 1, 3, 2, 4).reshape(x.shape[0], params.chans, self.h * self.p, self.w * self.p)


class ERA5(Dataset):
    def __init__(self, n, seed, lead=1):
        rng = torch.Generator().manual_seed(seed)
        low = torch.randn(n + 2, params.chans, 12, 24, generator=rng).cumsum(0) / 4
        self.low, self.n, self.lead = low, n, lead

    def __len__(self):
        return self.n

    def field(self, t):
        return F.interpolate(self.low[t:t + 1], size=tuple(params.img), mode="bilinear")[0]

    def __getitem__(self, i):
        return tuple(self.field(i + k) for k in range(self.lead + 1))


lat = torch.linspace(90, -90, params.img[0], device=device)
weight = torch.cos(torch.deg2rad(lat)).clamp(min=0)
weight = (weight / weight.mean()).view(1, 1, -1, 1)


def lp_loss(pred, y):
    b = pred.shape[0]
    return (torch.norm((pred - y).reshape(b, -1), 2, 1) / torch.norm(y.reshape(b, -1), 2, 1)).mean()


def weighted_rmse(pred, y):
    return torch.sqrt((weight * (pred - y) ** 2).mean(dim=(-1, -2))).mean()


model = AFNONet().to(device)
net = model if params.no_compile else torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, betas=(0.9, 0.95), fused=device.type == "cuda")
valid_loader = DataLoader(ERA5(max(params.years // 8, 4), 1), batch_size=params.batch, drop_last=True)
exp_dir = tempfile.mkdtemp()
best = float("inf")

for stage, lead in (("pretrain", 1), ("finetune", 2)):
    loader = DataLoader(ERA5(params.years, 0, lead), batch_size=params.batch if lead == 1 else params.batch // 2, shuffle=True, drop_last=True, num_workers=1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=len(loader))
    model.train()
    t0, total = time.time(), 0.0
    for fields in loader:
        fields = [f.to(device, non_blocking=True) for f in fields]
        optimizer.zero_grad(set_to_none=True)
        x, loss = fields[0], 0.0
        for target in fields[1:]:
            with torch.autocast(device.type, dtype=torch.bfloat16):
                x = net(x)
            x = x.float()
            loss = loss + lp_loss(x, target)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    print(f"{stage}: train loss {total / len(loader):.4f} in {time.time() - t0:.1f}s")
    model.eval()
    rmse = []
    with torch.no_grad():
        for x, y in valid_loader:
            with torch.autocast(device.type, dtype=torch.bfloat16):
                pred = net(x.to(device))
            rmse.append(weighted_rmse(pred.float(), y.to(device)).item())
    print(f"{stage}: valid rmse {np.mean(rmse):.4f}")
    torch.save({"stage": stage, "model_state": model.state_dict(), "optimizer_state_dict": optimizer.state_dict()}, os.path.join(exp_dir, "ckpt.tar"))
    if np.mean(rmse) < best:
        best = np.mean(rmse)
        torch.save(model.state_dict(), os.path.join(exp_dir, "best_ckpt.tar"))

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
