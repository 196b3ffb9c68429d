# SPDX-License-Identifier: Apache-2.0
"""EDSR x4: small patches in training, whole photographs with self-ensemble in validation."""
import argparse
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"


class Div2kLike(Dataset):
    """HR patches made of random waves; LR by bicubic reduction."""

    def __init__(self, sizes, scale):
        self.sizes, self.scale = sizes, scale

    def __len__(self):
        return len(self.sizes)

    def __getitem__(self, idx):
        h, w = self.sizes[idx]
        g = torch.Generator().manual_seed(idx)
        fy, fx = torch.rand(2, 3, 1, 1, generator=g) * 0.5
        yy = torch.arange(h * self.scale).view(1, -1, 1)
        xx = torch.arange(w * self.scale).view(1, 1, -1)
        hr = torch.sin(yy * fy + xx * fx) * 0.5 + 0.5
        lr = F.interpolate(hr[None], scale_factor=1 / self.scale, mode="bicubic", antialias=True)[0]
        return lr, hr


class ResBlock(nn.Module):
    def __init__(self, n_feats, res_scale):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(n_feats, n_feats, 3, padding=1), nn.ReLU(True), nn.Conv2d(n_feats, n_feats, 3, padding=1))
        self.res_scale = res_scale

    def forward(self, x):
        return self.body(x).mul(self.res_scale) + x


class EDSR(nn.Module):
    def __init__(self, n_resblocks=32, n_feats=256, scale=4, res_scale=0.1):
        super().__init__()
        self.head = nn.Conv2d(3, n_feats, 3, padding=1)
        self.body = nn.Sequential(*[ResBlock(n_feats, res_scale) for _ in range(n_resblocks)], nn.Conv2d(n_feats, n_feats, 3, padding=1))
        up = []
        for _ in range(int(math.log2(scale))):
            up += [nn.Conv2d(n_feats, 4 * n_feats, 3, padding=1), nn.PixelShuffle(2)]
        self.tail = nn.Sequential(*up, nn.Conv2d(n_feats, 3, 3, padding=1))
        self.register_buffer("mean", torch.tensor([0.4488, 0.4371, 0.4040]).view(1, 3, 1, 1))

    def forward(self, x):
        x = self.head(x - self.mean)
        x = self.body(x) + x
        return self.tail(x) + self.mean


def ssim(a, b, window=11):
    k = torch.exp(-((torch.arange(window, device=a.device) - window // 2) ** 2) / 4.5)
    k = (k / k.sum())
    k = (k[:, None] * k[None]).expand(3, 1, -1, -1)
    conv = lambda t: F.conv2d(t, k, groups=3)
    ma, mb = conv(a), conv(b)
    va, vb, cov = conv(a * a) - ma ** 2, conv(b * b) - mb ** 2, conv(a * b) - ma * mb
    return (((2 * ma * mb + 1e-4) * (2 * cov + 9e-4)) / ((ma ** 2 + mb ** 2 + 1e-4) * (va + vb + 9e-4))).mean()


class Trainer:
    def __init__(self, args):
        self.args = args
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if SMALL:
            self.model, patch, full = EDSR(2, 16), 16, [(20, 30), (24, 22)]
        else:
            self.model, patch, full = EDSR(), 48, [(339, 510), (384, 510)]
        self.model.to(self.device)
        self.train_loader = DataLoader(Div2kLike([(patch, patch)] * (args.batch_size * 6), 4), args.batch_size, shuffle=True, num_workers=0 if SMALL else 4)
        self.test_loader = DataLoader(Div2kLike(full, 4), 1)
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-4, betas=(0.9, 0.999), eps=1e-8)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, 0.5)

    def train(self):
        self.model.train()
        total = 0
        for lr, hr in self.train_loader:
            lr, hr = lr.to(self.device), hr.to(self.device)
            self.optimizer.zero_grad()
            sr = self.model(lr)
            loss = F.l1_loss(sr, hr)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        self.scheduler.step()
        return total / len(self.train_loader)

    def x4_ensemble(self, lr):
        outs = []
        for dims in ([], [3], [2], [2, 3]):
            y = self.model(lr.flip(dims) if dims else lr)
            outs.append(y.flip(dims) if dims else y)
        return torch.stack(outs).mean(0)

    @torch.inference_mode()
    def test(self):
        self.model.eval()
        rows = []
        for lr, hr in self.test_loader:
            lr, hr = lr.to(self.device), hr.to(self.device)
            sr = self.x4_ensemble(lr).clamp(0, 1)
            psnr = -10 * torch.log10(F.mse_loss(sr, hr))
            rows.append((psnr.item(), ssim(sr, hr).item()))
        return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    t = Trainer(args)
    for e in range(args.epochs):
        print(e, t.train(), t.test())
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
