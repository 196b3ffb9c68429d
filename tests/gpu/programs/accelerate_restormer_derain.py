"""Restormer (transposed attention) for deraining with progressive patch sizes, accelerate bf16."""
import argparse
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset


class BiasFreeLayerNorm(nn.Module):
    def __init__(self, c, bias=True):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(c)), nn.Parameter(torch.zeros(c))

    def forward(self, x):
        h, w = x.shape[-2:]
        x = x.flatten(2).transpose(1, 2)
        mu, sigma = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
        x = (x - mu) / torch.sqrt(sigma + 1e-5) * self.weight + self.bias
        return x.transpose(1, 2).view(x.shape[0], -1, h, w)


class GDFN(nn.Module):
    def __init__(self, dim, factor=2.66):
        super().__init__()
        hid = int(dim * factor)
        self.project_in = nn.Conv2d(dim, hid * 2, 1, bias=False)
        self.dwconv = nn.Conv2d(hid * 2, hid * 2, 3, padding=1, groups=hid * 2, bias=False)
        self.project_out = nn.Conv2d(hid, dim, 1, bias=False)

    def forward(self, x):
        x1, x2 = self.dwconv(self.project_in(x)).chunk(2, dim=1)
        return self.project_out(F.gelu(x1) * x2)


class MDTA(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.temperature = nn.Parameter(torch.ones(heads, 1, 1))
        self.qkv = nn.Conv2d(dim, dim * 3, 1, bias=False)
        self.dw = nn.Conv2d(dim * 3, dim * 3, 3, padding=1, groups=dim * 3, bias=False)
        self.out = nn.Conv2d(dim, dim, 1, bias=False)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.dw(self.qkv(x)).chunk(3, dim=1)
        q, k, v = (t.reshape(b, self.heads, c // self.heads, h * w) for t in (q, k, v))
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        attn = (q @ k.transpose(-2, -1) * self.temperature).softmax(dim=-1)
        return self.out((attn @ v).reshape(b, c, h, w))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.attn, self.norm2, self.ffn = BiasFreeLayerNorm(dim), MDTA(dim, heads), BiasFreeLayerNorm(dim), GDFN(dim)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.ffn(self.norm2(x))


def stage(dim, n, heads):
    return nn.Sequential(*[Block(dim, heads) for _ in range(n)])


class Downsample(nn.Sequential):
    def __init__(self, c):
        super().__init__(nn.Conv2d(c, c // 2, 3, padding=1, bias=False), nn.PixelUnshuffle(2))


class Upsample(nn.Sequential):
    def __init__(self, c):
        super().__init__(nn.Conv2d(c, c * 2, 3, padding=1, bias=False), nn.PixelShuffle(2))


class Restormer(nn.Module):
    def __init__(self, dim=48, blocks=(2, 3, 3, 4), refine=2, heads=(1, 2, 4, 8)):
        super().__init__()
        self.embed = nn.Conv2d(3, dim, 3, padding=1, bias=False)
        self.enc1, self.down1 = stage(dim, blocks[0], heads[0]), Downsample(dim)
        self.enc2, self.down2 = stage(dim * 2, blocks[1], heads[1]), Downsample(dim * 2)
        self.enc3, self.down3 = stage(dim * 4, blocks[2], heads[2]), Downsample(dim * 4)
        self.latent = stage(dim * 8, blocks[3], heads[3])
        self.up3, self.red3, self.dec3 = Upsample(dim * 8), nn.Conv2d(dim * 8, dim * 4, 1, bias=False), stage(dim * 4, blocks[2], heads[2])
        self.up2, self.red2, self.dec2 = Upsample(dim * 4), nn.Conv2d(dim * 4, dim * 2, 1, bias=False), stage(dim * 2, blocks[1], heads[1])
        self.up1, self.dec1 = Upsample(dim * 2), stage(dim * 2, blocks[0], heads[0])
        self.refine, self.out = stage(dim * 2, refine, heads[0]), nn.Conv2d(dim * 2, 3, 3, padding=1, bias=False)

    def forward(self, x):
        e1 = self.enc1(self.embed(x))
        e2 = self.enc2(self.down1(e1))
        e3 = self.enc3(self.down2(e2))
        z = self.latent(self.down3(e3))
        d3 = self.dec3(self.red3(torch.cat([self.up3(z), e3], 1)))
        d2 = self.dec2(self.red2(torch.cat([self.up2(d3), e2], 1)))
        d1 = self.dec1(torch.cat([self.up1(d2), e1], 1))
        return self.out(self.refine(d1)) + x


class Rain(Dataset):
    def __init__(self, n, full, seed):
        g = torch.Generator().manual_seed(seed)
        self.low, self.full, self.patch = torch.rand(n, 3, 16, 16, generator=g), full, full

    def __len__(self):
        return len(self.low)

    def __getitem__(self, i):
        clean = F.interpolate(self.low[i:i + 1], size=self.full, mode="bilinear")[0]
        streaks = (torch.rand(1, self.full, self.full) > 0.97).float()
        rainy = (clean + 0.5 * F.avg_pool2d(streaks, (9, 1), stride=1, padding=(4, 0)) * 3).clamp(0, 1)
        y, x = torch.randint(0, self.full - self.patch + 1, (2,)).tolist()
        s = (slice(None), slice(y, y + self.patch), slice(x, x + self.patch))
        return rainy[s], clean[s]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dim", type=int, default=48)
    ap.add_argument("--patches", type=int, nargs="+", default=[128, 160, 192])
    ap.add_argument("--batches", type=int, nargs="+", default=[6, 4, 2])
    ap.add_argument("--iters", type=int, default=16)
    ap.add_argument("--val_size", type=int, default=320)
    args = ap.parse_args()
    accelerator = Accelerator(mixed_precision="bf16")
    set_seed(100)
    model = Restormer(args.dim)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.999), weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.iters * len(args.patches), eta_min=1e-6)
    model, opt, sched = accelerator.prepare(model, opt, sched)
    val = accelerator.prepare(DataLoader(Rain(4, args.val_size, 1), batch_size=1))
    out = tempfile.mkdtemp()
    for patch, bs in zip(args.patches, args.batches):
        ds = Rain(args.iters * bs, max(args.patches) + 32, 0)
        ds.patch = patch
        loader = accelerator.prepare(DataLoader(ds, batch_size=bs, shuffle=True, num_workers=1, drop_last=True))
        model.train()
        for i, (x, y) in enumerate(loader):
            opt.zero_grad()
            loss = F.l1_loss(model(x), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 0.01)
            opt.step()
            sched.step()
            if i % 8 == 0:
                accelerator.print(f"patch {patch} batch {bs} iter {i} l_pix {loss.item():.4f}")
        model.eval()
        psnr = []
        with torch.no_grad():
            for x, y in val:
                mse = F.mse_loss(model(x).clamp(0, 1), y)
                psnr.append((-10 * torch.log10(mse)).item())
        accelerator.print(f"patch {patch}: validation PSNR {sum(psnr) / len(psnr):.2f}")
        accelerator.save(accelerator.unwrap_model(model).state_dict(), f"{out}/net_g_{patch}.pth")
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
