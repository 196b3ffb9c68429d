# Hierarchical (ladder) VAE for 64 x 64 pictures. fp32, Adamax, KL warm-up with free bits,
# gradient skipping, validation bound each epoch and a few decoded samples at several temperatures.
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

p = argparse.ArgumentParser()
p.add_argument("--batch-size", type=int, default=48)
p.add_argument("--width", type=int, default=128)
p.add_argument("--images", type=int, default=3200)
p.add_argument("--epochs", type=int, default=3)
p.add_argument("--blocks", type=int, nargs=5, default=[2, 2, 3, 3, 2], help="decoder blocks at 4, 8, 16, 32, 64 pixels")
p.add_argument("--skip-threshold", type=float, default=4000.0)
cfg = p.parse_args()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
RES = [4, 8, 16, 32, 64]
Z = 16


def pictures(n, seed):
    g = torch.Generator().manual_seed(seed)
    centre, r = torch.rand(n, 2, generator=g) * 40 + 12, torch.rand(n, generator=g) * 14 + 6
    ax = torch.arange(64).float()
    d = ((ax[None, :, None] - centre[:, 0, None, None]) ** 2 + (ax[None, None] - centre[:, 1, None, None]) ** 2).sqrt()
    disc = torch.sigmoid(r[:, None, None] - d)[:, None]
    fg, bg = torch.rand(n, 3, 1, 1, generator=g), torch.rand(n, 3, 1, 1, generator=g)
    x = disc * fg + (1 - disc) * bg
    return ((x + 0.02 * torch.randn(x.shape, generator=g)).clamp(0, 1) * 255).to(torch.uint8)


class Res(nn.Module):
    def __init__(self, c, mid, out=None, k=3, zero=False):
        super().__init__()
        out = out or c
        self.residual = out == c
        self.net = nn.Sequential(nn.GELU(), nn.Conv2d(c, mid, 1), nn.GELU(), nn.Conv2d(mid, mid, k, padding=k // 2),
                                 nn.GELU(), nn.Conv2d(mid, mid, k, padding=k // 2), nn.GELU(), nn.Conv2d(mid, out, 1))
        if zero:
            nn.init.zeros_(self.net[-1].weight)

    def forward(self, x):
        return x + self.net(x) if self.residual else self.net(x)


def kl(qm, qs, pm, ps):
    return -0.5 + ps - qs + 0.5 * (torch.exp(qs) ** 2 + (qm - pm) ** 2) / torch.exp(ps) ** 2


class DecBlock(nn.Module):
    def __init__(self, c, res):
        super().__init__()
        k = 3 if res > 4 else 1
        self.post = Res(2 * c, c // 2, 2 * Z, k)
        self.prior = Res(c, c // 2, 2 * Z + c, k)
        self.inject = nn.Conv2d(Z, c, 1)
        self.res = Res(c, c // 2, k=k)
        self.c = c

    def forward(self, x, act=None, temperature=1.0):
        pm, ps, feat = self.prior(x).split([Z, Z, self.c], 1)
        ps = ps.clamp(-6, 4)
        x = x + 0.1 * feat
        if act is None:
            z, d = pm + temperature * ps.exp() * torch.randn_like(pm), None
        else:
            qm, qs = self.post(torch.cat([x, act], 1)).chunk(2, 1)
            qs = qs.clamp(-6, 4)
            z = qm + qs.exp() * torch.randn_like(qm)
            d = kl(qm, qs, pm, ps).sum((1, 2, 3))
        return self.res(x + self.inject(z)), d


class LadderVAE(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.stem = nn.Conv2d(3, c, 3, padding=1)
        self.enc = nn.ModuleDict({str(r): nn.Sequential(*[Res(c, c // 2, k=3 if r > 4 else 1) for _ in range(n)])
                                  for r, n in zip(RES, cfg.blocks)})
        self.dec = nn.ModuleDict({str(r): nn.ModuleList([DecBlock(c, r) for _ in range(n)]) for r, n in zip(RES, cfg.blocks)})
        self.bias = nn.ParameterDict({str(r): nn.Parameter(torch.zeros(1, c, r, r)) for r in RES})
        self.out = nn.Conv2d(c, 6, 1)

    def encode(self, x):
        h, acts = self.stem(x), {}
        for r in reversed(RES):
            h = self.enc[str(r)](h)
            acts[r] = h
            if r > 4:
                h = F.avg_pool2d(h, 2)
        return acts

    def decode(self, n, acts=None, temperature=1.0):
        x, kls = None, []
        for r in RES:
            b = self.bias[str(r)].expand(n, -1, -1, -1)
            x = b if x is None else F.interpolate(x, scale_factor=2) + b
            for blk in self.dec[str(r)]:
                x, d = blk(x, None if acts is None else acts[r], temperature)
                kls.append(d)
        mean, log_scale = self.out(x).chunk(2, 1)
        return torch.tanh(mean), log_scale.clamp(-5, 2), kls

    def forward(self, x):
        mean, log_scale, kls = self.decode(len(x), self.encode(x))
        nll = (log_scale + 0.5 * math.log(2 * math.pi) + 0.5 * ((x - mean) / log_scale.exp()) ** 2).sum((1, 2, 3))
        return nll, torch.stack(kls, 1)


def to_float(x):
    return x.to(device).float() / 127.5 - 1


train = DataLoader(TensorDataset(pictures(cfg.images, 1)), cfg.batch_size, shuffle=True, drop_last=True)
valid = DataLoader(TensorDataset(pictures(cfg.images // 8, 2)), cfg.batch_size)
model = LadderVAE(cfg.width).to(device)
print(f"{sum(q.numel() for q in model.parameters()) / 1e6:.1f}M parameters")
optimizer = torch.optim.Adamax(model.parameters(), lr=1e-3)
step, total_steps = 0, cfg.epochs * len(train)
for epoch in range(cfg.epochs):
    model.train()
    skipped = 0
    for (x,) in train:
        beta = min(1.0, 0.1 + step / (0.5 * total_steps))
        nll, kls = model(to_float(x))
        loss = (nll.mean() + beta * kls.mean(0).clamp(min=1.0).sum()) / (3 * 64 * 64)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 50.0)
        if torch.isfinite(norm) and norm < cfg.skip_threshold:
            optimizer.step()
        else:
            skipped += 1
        step += 1
    model.eval()
    bounds = []
    with torch.no_grad():
        for (x,) in valid:
            nll, kls = model(to_float(x))
            bounds.append((nll + kls.sum(1)).cpu() / (3 * 64 * 64 * math.log(2)))
        spread = [model.decode(16, temperature=t)[0].std().item() for t in (0.3, 0.7, 1.0)]
    print(f"epoch {epoch} loss {loss.item():.4f} skipped {skipped} valid bits/dim {torch.cat(bounds).mean().item():.4f} "
          f"sample spread {[round(s, 3) for s in spread]}", flush=True)

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
