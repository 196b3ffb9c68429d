# SPDX-License-Identifier: Apache-2.0
import os
import argparse
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader

# image denoising with a NAFNet; simple script

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"


class NoisyImages(Dataset):
    def __init__(self, n, size, sigma=25 / 255):
        self.n = n
        self.size = size
        self.sigma = sigma

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        low = torch.rand(1, 3, self.size // 8, self.size // 8)
        clean = nn.functional.interpolate(low, size=(self.size, self.size), mode="bicubic")[0].clamp(0, 1)
        noisy = clean + self.sigma * torch.randn_like(clean)
        return noisy, clean


class LayerNorm2d(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, c, 1, 1))
        self.bias = nn.Parameter(torch.zeros(1, c, 1, 1))

    def forward(self, x):
        mu = x.mean(1, keepdim=True)
        var = (x - mu).pow(2).mean(1, keepdim=True)
        y = (x - mu) / (var + 1e-6).sqrt()
        return y * self.weight + self.bias


class Gate(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        return a * b


class NAFBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm1 = LayerNorm2d(c)
        self.conv1 = nn.Conv2d(c, 2 * c, 1)
        self.conv2 = nn.Conv2d(2 * c, 2 * c, 3, padding=1, groups=2 * c)
        self.sg = Gate()
        self.sca = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(c, c, 1))
        self.conv3 = nn.Conv2d(c, c, 1)
        self.norm2 = LayerNorm2d(c)
        self.conv4 = nn.Conv2d(c, 2 * c, 1)
        self.conv5 = nn.Conv2d(c, c, 1)
        self.beta = nn.Parameter(torch.zeros(1, c, 1, 1))
        self.gamma = nn.Parameter(torch.zeros(1, c, 1, 1))

    def forward(self, inp):
        x = self.sg(self.conv2(self.conv1(self.norm1(inp))))
        x = x * self.sca(x)
        y = inp + self.conv3(x) * self.beta
        x = self.conv5(self.sg(self.conv4(self.norm2(y))))
        return y + x * self.gamma


class NAFNet(nn.Module):
    def __init__(self, width, enc, mid, dec):
        super().__init__()
        self.intro = nn.Conv2d(3, width, 3, padding=1)
        self.ending = nn.Conv2d(width, 3, 3, padding=1)
        self.encoders, self.downs, self.ups, self.decoders = nn.ModuleList(), nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        c = width
        for n in enc:
            self.encoders.append(nn.Sequential(*[NAFBlock(c) for _ in range(n)]))
            self.downs.append(nn.Conv2d(c, 2 * c, 2, 2))
            c *= 2
        self.middle = nn.Sequential(*[NAFBlock(c) for _ in range(mid)])
        for n in dec:
            self.ups.append(nn.Sequential(nn.Conv2d(c, 2 * c, 1, bias=False), nn.PixelShuffle(2)))
            c //= 2
            self.decoders.append(nn.Sequential(*[NAFBlock(c) for _ in range(n)]))

    def forward(self, x):
        h = self.intro(x)
        skips = []
        for e, d in zip(self.encoders, self.downs):
            h = e(h)
            skips.append(h)
            h = d(h)
        h = self.middle(h)
        for u, d, s in zip(self.ups, self.decoders, skips[::-1]):
            h = d(u(h) + s)
        return self.ending(h) + x


def psnr(a, b):
    return 10 * torch.log10(1 / ((a - b) ** 2).mean())


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=8)
    args = ap.parse_args()

    size, val_size = (32, 48) if small else (192, 384)
    train_loader = DataLoader(NoisyImages(args.batch_size * (2 if small else 6), size), batch_size=args.batch_size, shuffle=True, num_workers=0 if small else 4)
    val_loader = DataLoader(NoisyImages(4 if small else 8, val_size), batch_size=2)
    if small:
        net = NAFNet(8, [1, 1], 1, [1, 1])
    else:
        net = NAFNet(32, [2, 2, 4, 8], 6, [2, 2, 2, 2])
    net = net.to(device)
    criterion = nn.MSELoss()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, betas=(0.9, 0.9), weight_decay=0.)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 2 * len(train_loader), eta_min=1e-7)

    for epoch in range(2):
        net.train()
        for noisy, clean in train_loader:
            noisy = noisy.to(device)
            clean = clean.to(device)
            optimizer.zero_grad()
            out = net(noisy)
            loss = criterion(out, clean)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.01)
            optimizer.step()
            sched.step()
        net.eval()
        val_loss = 0
        val_psnr = 0
        for noisy, clean in val_loader:
            noisy = noisy.to(device)
            clean = clean.to(device)
            out = net(noisy)
            loss = criterion(out, clean)
            val_loss += loss.item()
            val_psnr += psnr(out, clean).item()
        print("Epoch %d val loss %.5f psnr %.2f" % (epoch, val_loss / len(val_loader), val_psnr / len(val_loader)))

    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
