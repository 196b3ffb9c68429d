# SPDX-License-Identifier: Apache-2.0
"""A GAN with spectral norm and hinge loss, two optimizers, the discriminator trained twice."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm

SMALL = os.environ.get("SMALL") == "1"
torch.manual_seed(0)
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--latent", type=int, default=128)
parser.add_argument("--lr", type=float, default=2e-4)
opt = parser.parse_args()
width = 16 if SMALL else 96


class Up(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm2d(a), nn.BatchNorm2d(b)
        self.c1, self.c2, self.skip = nn.Conv2d(a, b, 3, padding=1), nn.Conv2d(b, b, 3, padding=1), nn.Conv2d(a, b, 1)

    def forward(self, x):
        h = self.c1(F.interpolate(F.relu(self.bn1(x)), scale_factor=2))
        return self.c2(F.relu(self.bn2(h))) + self.skip(F.interpolate(x, scale_factor=2))


class Down(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.c1, self.c2 = spectral_norm(nn.Conv2d(a, b, 3, padding=1)), spectral_norm(nn.Conv2d(b, b, 3, padding=1))
        self.skip = spectral_norm(nn.Conv2d(a, b, 1))

    def forward(self, x):
        h = self.c2(F.relu(self.c1(F.relu(x))))
        return F.avg_pool2d(h, 2) + self.skip(F.avg_pool2d(x, 2))


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(opt.latent, 8 * width * 16)
        self.up = nn.Sequential(Up(8 * width, 8 * width), Up(8 * width, 4 * width), Up(4 * width, 2 * width), Up(2 * width, width), Up(width, width // 2))
        self.last = nn.Sequential(nn.BatchNorm2d(width // 2), nn.ReLU(), nn.Conv2d(width // 2, 3, 3, padding=1), nn.Tanh())

    def forward(self, z):
        return self.last(self.up(self.first(z).view(len(z), -1, 4, 4)))


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(Down(3, width // 2), Down(width // 2, width), Down(width, 2 * width), Down(2 * width, 4 * width), Down(4 * width, 8 * width))
        self.out = spectral_norm(nn.Linear(8 * width, 1))

    def forward(self, x):
        return self.out(F.relu(self.down(x)).sum((2, 3)))


G, D = Generator().cuda(), Discriminator().cuda()
g_opt = torch.optim.Adam(G.parameters(), lr=opt.lr, betas=(0.0, 0.9))
d_opt = torch.optim.Adam(D.parameters(), lr=opt.lr, betas=(0.0, 0.9))
images = torch.rand(opt.batch_size * 2, 3, 128, 128) * 2 - 1
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images), batch_size=opt.batch_size, shuffle=True)
fixed = torch.randn(16, opt.latent).cuda()

for i, (real,) in enumerate(loader):
    real = real.cuda()
    for _ in range(2):
        z = torch.randn(len(real), opt.latent).cuda()
        fake = G(z).detach()
        d_loss = F.relu(1 - D(real)).mean() + F.relu(1 + D(fake)).mean()
        d_opt.zero_grad()
        d_loss.backward()
        d_opt.step()
    z = torch.randn(len(real), opt.latent).cuda()
    g_loss = -D(G(z)).mean()
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
    print(f"[{i}] D {d_loss.item():.3f} G {g_loss.item():.3f}")
with torch.no_grad():
    G.eval()
    print(G(fixed).cpu().shape)

if torch.cuda.is_available():
    s = torch.cuda.memory_stats()
    print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
