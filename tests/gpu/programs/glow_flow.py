"""Glow normalizing flow (actnorm, invertible 1x1 conv, affine coupling) on 64x64 images."""
import argparse
import math
import os
import tempfile

import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision import utils
from tqdm import tqdm

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
parser = argparse.ArgumentParser(description="Glow trainer")
parser.add_argument("--batch", default=16, type=int)
parser.add_argument("--iter", default=90, type=int)
parser.add_argument("--n_flow", default=16, type=int)
parser.add_argument("--n_block", default=3, type=int)
parser.add_argument("--filter", default=384, type=int)
parser.add_argument("--n_bits", default=5, type=int)
parser.add_argument("--lr", default=1e-4, type=float)
parser.add_argument("--img_size", default=64, type=int)
parser.add_argument("--temp", default=0.7, type=float)
parser.add_argument("--n_sample", default=20, type=int)
args = parser.parse_args()
torch.manual_seed(5)


class ActNorm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.loc, self.scale = nn.Parameter(torch.zeros(1, c, 1, 1)), nn.Parameter(torch.ones(1, c, 1, 1))
        self.register_buffer("initialized", torch.tensor(0, dtype=torch.uint8))

    def initialize(self, x):
        with torch.no_grad():
            flat = x.permute(1, 0, 2, 3).contiguous().view(x.shape[1], -1)
            mean, std = flat.mean(1).view(1, -1, 1, 1), flat.std(1).view(1, -1, 1, 1)
            self.loc.data.copy_(-mean)
            self.scale.data.copy_(1 / (std + 1e-6))

    def forward(self, x):
        if self.initialized.item() == 0:
            self.initialize(x)
            self.initialized.fill_(1)
        logdet = x.shape[2] * x.shape[3] * torch.sum(torch.log(torch.abs(self.scale)))
        return self.scale * (x + self.loc), logdet

    def reverse(self, y):
        return y / self.scale - self.loc


class InvConv2d(nn.Module):
    def __init__(self, c):
        super().__init__()
        q, _ = torch.linalg.qr(torch.randn(c, c))
        self.weight = nn.Parameter(q)

    def forward(self, x):
        out = F.conv2d(x, self.weight[:, :, None, None])
        logdet = x.shape[2] * x.shape[3] * torch.slogdet(self.weight.double())[1].float()
        return out, logdet

    def reverse(self, y):
        return F.conv2d(y, self.weight.inverse()[:, :, None, None])


class ZeroConv2d(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.conv = nn.Conv2d(i, o, 3)
        nn.init.zeros_(self.conv.weight)
        nn.init.zeros_(self.conv.bias)
        self.scale = nn.Parameter(torch.zeros(1, o, 1, 1))

    def forward(self, x):
        out = self.conv(F.pad(x, [1, 1, 1, 1], value=1))
        return out * torch.exp(self.scale * 3)


class AffineCoupling(nn.Module):
    def __init__(self, c, filt):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(c // 2, filt, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(filt, filt, 1), nn.ReLU(inplace=True),
                                 ZeroConv2d(filt, c))
        self.net[0].weight.data.normal_(0, 0.05)
        self.net[2].weight.data.normal_(0, 0.05)

    def forward(self, x):
        a, b = x.chunk(2, 1)
        log_s, t = self.net(a).chunk(2, 1)
        s = torch.sigmoid(log_s + 2)
        return torch.cat([a, (b + t) * s], 1), torch.sum(torch.log(s).view(x.shape[0], -1), 1)

    def reverse(self, y):
        a, b = y.chunk(2, 1)
        log_s, t = self.net(a).chunk(2, 1)
        return torch.cat([a, b / torch.sigmoid(log_s + 2) - t], 1)


class Flow(nn.Module):
    def __init__(self, c, filt):
        super().__init__()
        self.actnorm, self.invconv, self.coupling = ActNorm(c), InvConv2d(c), AffineCoupling(c, filt)

    def forward(self, x):
        x, ld = self.actnorm(x)
        x, d1 = self.invconv(x)
        x, d2 = self.coupling(x)
        return x, ld + d1 + d2

    def reverse(self, y):
        return self.actnorm.reverse(self.invconv.reverse(self.coupling.reverse(y)))


def gaussian_log_p(x, mean, log_sd):
    return -0.5 * math.log(2 * math.pi) - log_sd - 0.5 * (x - mean) ** 2 / torch.exp(2 * log_sd)


class Block(nn.Module):
    def __init__(self, c, n_flow, filt, split=True):
        super().__init__()
        sq = c * 4
        self.flows = nn.ModuleList([Flow(sq, filt) for _ in range(n_flow)])
        self.split = split
        self.prior = ZeroConv2d(c * 2, sq) if split else ZeroConv2d(sq, sq * 2)

    def forward(self, x):
        out = F.pixel_unshuffle(x, 2)
        logdet = 0
        for flow in self.flows:
            out, det = flow(out)
            logdet = logdet + det
        if self.split:
            out, z = out.chunk(2, 1)
            mean, log_sd = self.prior(out).chunk(2, 1)
        else:
            mean, log_sd = self.prior(torch.zeros_like(out)).chunk(2, 1)
            z = out
        log_p = gaussian_log_p(z, mean, log_sd).view(x.shape[0], -1).sum(1)
        return out, logdet, log_p, z

    def reverse(self, y, eps):
        if self.split:
            mean, log_sd = self.prior(y).chunk(2, 1)
            y = torch.cat([y, mean + torch.exp(log_sd) * eps], 1)
        else:
            mean, log_sd = self.prior(torch.zeros_like(y)).chunk(2, 1)
            y = mean + torch.exp(log_sd) * eps
        for flow in self.flows[::-1]:
            y = flow.reverse(y)
        return F.pixel_shuffle(y, 2)


class Glow(nn.Module):
    def __init__(self, c, n_flow, n_block, filt):
        super().__init__()
        self.blocks = nn.ModuleList()
        for _ in range(n_block - 1):
            self.blocks.append(Block(c, n_flow, filt))
            c *= 2
        self.blocks.append(Block(c, n_flow, filt, split=False))

    def forward(self, x):
        log_p, logdet, zs = 0, 0, []
        for b in self.blocks:
            x, det, lp, z = b(x)
            zs.append(z)
            logdet, log_p = logdet + det, log_p + lp
        return log_p, logdet, zs

    def reverse(self, zs):
        x = zs[-1]
        for i, b in enumerate(self.blocks[::-1]):
            x = b.reverse(x, zs[-(i + 1)])
        return x


class Images(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(0)
        self.low = torch.rand(n, 3, 8, 8, generator=g)

    def __len__(self):
        return len(self.low)

    def __getitem__(self, i):
        return F.interpolate(self.low[i:i + 1], size=args.img_size, mode="bilinear")[0]


def sample_data(dataset, batch):
    while True:
        for x in DataLoader(dataset, shuffle=True, batch_size=batch, num_workers=0, drop_last=True):
            yield x


def calc_z_shapes():
    c, s, shapes = 3, args.img_size, []
    for _ in range(args.n_block - 1):
        s //= 2
        c *= 2
        shapes.append((c, s, s))
    s //= 2
    shapes.append((c * 4, s, s))
    return shapes


model = Glow(3, args.n_flow, args.n_block, args.filter).to(device)
optimizer = optim.Adam(model.parameters(), lr=args.lr)
data = sample_data(Images(512), args.batch)
n_bins = 2.0 ** args.n_bits
n_pixel = args.img_size * args.img_size * 3
z_sample = [torch.randn(args.n_sample, *s, device=device) * args.temp for s in calc_z_shapes()]
out_dir = tempfile.mkdtemp()

with tqdm(range(args.iter)) as pbar:
    for i in pbar:
        image = next(data).to(device) * 255
        image = torch.floor(image / 2 ** (8 - args.n_bits)) / n_bins - 0.5
        if i == 0:
            with torch.no_grad():
                model(image + torch.rand_like(image) / n_bins)
                continue
        log_p, logdet, _ = model(image + torch.rand_like(image) / n_bins)
        logdet = logdet.mean()
        loss = -math.log(n_bins) * n_pixel + logdet + log_p
        loss = (-loss / (math.log(2) * n_pixel)).mean()
        model.zero_grad()
        loss.backward()
        warmup_lr = args.lr * min(1, i * args.batch / 500)
        optimizer.param_groups[0]["lr"] = warmup_lr
        optimizer.step()
        pbar.set_description(f"Loss: {loss.item():.5f}; logdet: {logdet.item():.1f}; lr: {warmup_lr:.7f}")
        if i % 30 == 0:
            with torch.no_grad():
                utils.save_image(model.reverse(z_sample).cpu().data, os.path.join(out_dir, f"{i:06d}.png"), nrow=10, normalize=True)
torch.save(model.state_dict(), os.path.join(out_dir, "model.pt"))
torch.save(optimizer.state_dict(), os.path.join(out_dir, "optim.pt"))

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
