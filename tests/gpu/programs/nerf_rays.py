# SPDX-License-Identifier: Apache-2.0
"""NeRF: positional encoding, coarse and fine network, volume rendering, many rays. --batch-size is the number of rays."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
torch.manual_seed(0)


def encode(x, levels):
    freqs = 2.0 ** torch.arange(levels, device=x.device)
    angles = (x[..., None, :] * freqs[:, None]).flatten(-2)
    return torch.cat([x, angles.sin(), angles.cos()], -1)


class NeRF(nn.Module):
    def __init__(self, width=256, depth=8, lx=10, ld=4):
        super().__init__()
        self.lx, self.ld = lx, ld
        a, d = 3 + 6 * lx, 3 + 6 * ld
        self.layers = nn.ModuleList([nn.Linear(a, width)] + [nn.Linear(width + a if i == 4 else width, width) for i in range(1, depth)])
        self.sigma, self.feature = nn.Linear(width, 1), nn.Linear(width, width)
        self.view, self.rgb = nn.Linear(width + d, width // 2), nn.Linear(width // 2, 3)

    def forward(self, points, dirs):
        x = encode(points, self.lx)
        h = x
        for i, layer in enumerate(self.layers):
            if i == 4:
                h = torch.cat([h, x], -1)
            h = F.relu(layer(h))
        sigma = self.sigma(h)
        d = encode(dirs, self.ld)[:, None].expand(*points.shape[:2], -1)
        return torch.sigmoid(self.rgb(F.relu(self.view(torch.cat([self.feature(h), d], -1))))), sigma.squeeze(-1)


def render(rgb, sigma, z):
    delta = torch.cat([z[:, 1:] - z[:, :-1], torch.full_like(z[:, :1], 1e10)], 1)
    alpha = 1 - torch.exp(-F.relu(sigma) * delta)
    through = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)[:, :-1]
    weights = alpha * through
    return (weights[..., None] * rgb).sum(1), weights


def sample_fine(z, weights, n):
    pdf = (weights[:, 1:-1] + 1e-5) / (weights[:, 1:-1] + 1e-5).sum(1, keepdim=True)
    cdf = torch.cat([torch.zeros_like(pdf[:, :1]), pdf.cumsum(1)], 1)
    u = torch.rand(len(z), n, device=z.device)
    index = torch.searchsorted(cdf.contiguous(), u, right=True).clamp(1, cdf.shape[1] - 1)
    mid = 0.5 * (z[:, 1:] + z[:, :-1])
    lo, hi = mid.gather(1, index - 1), mid.gather(1, index.clamp(max=mid.shape[1] - 1))
    return torch.sort(torch.cat([z, lo + (hi - lo) * torch.rand_like(u)], 1), 1)[0]


parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=3072)
args = parser.parse_args()
coarse, fine = NeRF(32 if SMALL else 256).cuda(), NeRF(32 if SMALL else 256).cuda()
optimizer = torch.optim.Adam(list(coarse.parameters()) + list(fine.parameters()), lr=5e-4)
n_coarse, n_fine = (8, 8) if SMALL else (64, 96)
for step in range(5):
    origin = torch.randn(args.batch_size, 3).cuda()
    direction = F.normalize(torch.randn(args.batch_size, 3), dim=-1).cuda()
    target = torch.rand(args.batch_size, 3).cuda()
    z = torch.linspace(2, 6, n_coarse).cuda().expand(args.batch_size, -1)
    z = z + torch.rand_like(z) * 4 / n_coarse
    rgb, weights = render(*coarse(origin[:, None] + direction[:, None] * z[..., None], direction), z)
    zf = sample_fine(z, weights.detach(), n_fine)
    rgb_fine, _ = render(*fine(origin[:, None] + direction[:, None] * zf[..., None], direction), zf)
    loss = F.mse_loss(rgb, target) + F.mse_loss(rgb_fine, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, "psnr", -10 * torch.log10(loss).item())

if torch.cuda.is_available():
    s = torch.cuda.memory_stats()
    print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
