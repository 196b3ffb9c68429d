"""Instant-NGP style radiance field in plain torch: hash grid, small fp16 MLPs, occupancy grid, PSNR of whole held-out views."""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

PRIMES = (1, 2654435761, 805459861)


def camera_rays(theta, phi, size, device, radius=2.2):
    eye = torch.tensor([math.cos(theta) * math.cos(phi), math.sin(theta) * math.cos(phi), math.sin(phi)], device=device) * radius
    fwd = -eye / eye.norm()
    right = F.normalize(torch.linalg.cross(fwd, torch.tensor([0.0, 0, 1], device=device)), dim=0)
    up = torch.linalg.cross(right, fwd)
    ax = torch.linspace(-0.45, 0.45, size, device=device)
    yy, xx = torch.meshgrid(-ax, ax, indexing="ij")
    d = F.normalize(fwd + xx[..., None] * right + yy[..., None] * up, dim=-1).reshape(-1, 3)
    return eye.expand_as(d), d


@torch.no_grad()
def trace_spheres(o, d, centres, radii, colors):
    """Ground truth: shaded balls on white."""
    oc = o[:, None] - centres
    b = (oc * d[:, None]).sum(-1)
    disc = b ** 2 - (oc.pow(2).sum(-1) - radii ** 2)
    t = torch.where(disc > 0, -b - disc.clamp(min=0).sqrt(), torch.full_like(b, 1e9))
    t, k = torch.where(t > 0, t, 1e9).min(1)
    hit = t < 1e8
    normal = F.normalize(o + t.clamp(max=10)[:, None] * d - centres[k], dim=-1)
    shade = 0.35 + 0.65 * (normal @ F.normalize(torch.tensor([1.0, 1, 2], device=o.device), dim=0)).clamp(min=0)
    stripes = 0.75 + 0.25 * torch.sign(torch.sin(25 * normal[:, 2]))
    return torch.where(hit[:, None], colors[k] * (shade * stripes)[:, None], torch.ones_like(d))


class HashGrid(nn.Module):
    def __init__(self, levels=16, features=2, log2_size=19, base=16, finest=1024):
        super().__init__()
        self.size = 2 ** log2_size
        growth = (finest / base) ** (1 / (levels - 1))
        self.res = [int(base * growth ** i) for i in range(levels)]
        self.tables = nn.Parameter(torch.empty(levels, self.size, features).uniform_(-1e-4, 1e-4))
        self.register_buffer("corners", torch.cartesian_prod(*[torch.arange(2)] * 3))
        self.out = levels * features

    def forward(self, x):
        feats = []
        for level, res in enumerate(self.res):
            p = x * res
            low = p.floor()
            w = p - low
            c = low.long()[:, None] + self.corners
            if (res + 1) ** 3 <= self.size:
                idx = c[..., 0] + (res + 1) * (c[..., 1] + (res + 1) * c[..., 2])
            else:
                idx = (c[..., 0] * PRIMES[0]) ^ (c[..., 1] * PRIMES[1]) ^ (c[..., 2] * PRIMES[2])
            f = F.embedding(idx % self.size, self.tables[level])
            cw = torch.where(self.corners.bool(), w[:, None], 1 - w[:, None]).prod(-1)
            feats.append((f * cw[..., None]).sum(1))
        return torch.cat(feats, -1)


class Field(nn.Module):
    def __init__(self, log2_size):
        super().__init__()
        self.grid = HashGrid(log2_size=log2_size)
        self.density = nn.Sequential(nn.Linear(self.grid.out, 64), nn.ReLU(), nn.Linear(64, 16))
        self.color = nn.Sequential(nn.Linear(15 + 9, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))

    @staticmethod
    def directions(d):
        x, y, z = d.unbind(-1)
        return torch.stack([torch.ones_like(x), x, y, z, x * y, y * z, x * z, x * x - y * y, 3 * z * z - 1], -1)

    def sigma(self, pts):
        h = self.density(self.grid((pts + 1) / 2))
        return torch.exp(h[:, 0].float().clamp(max=10) - 1), h[:, 1:]

    def forward(self, pts, d):
        sigma, geo = self.sigma(pts)
        rgb = torch.sigmoid(self.color(torch.cat([geo, self.directions(d).to(geo.dtype)], -1)).float())
        return sigma, rgb


def render(field, occupancy, o, d, samples, perturb):
    n = len(o)
    t = torch.linspace(1.0, 3.4, samples + 1, device=o.device)[:-1].expand(n, samples)
    step = 2.4 / samples
    if perturb:
        t = t + step * torch.rand_like(t)
    pts = o[:, None] + t[..., None] * d[:, None]
    inside = (pts.abs() < 1).all(-1)
    cell = ((pts.clamp(-0.999, 0.999) + 1) / 2 * 64).long()
    keep = inside & occupancy[cell[..., 0], cell[..., 1], cell[..., 2]]
    sigma = torch.zeros(n, samples, device=o.device)
    rgb = torch.zeros(n, samples, 3, device=o.device)
    if keep.any():
        s, c = field(pts[keep], d[:, None].expand_as(pts)[keep])
        sigma = sigma.masked_scatter(keep, s)
        rgb = rgb.masked_scatter(keep[..., None].expand_as(rgb), c)
    alpha = 1 - torch.exp(-sigma * step)
    trans = torch.cumprod(torch.cat([torch.ones(n, 1, device=o.device), 1 - alpha + 1e-10], 1), 1)[:, :-1]
    w = alpha * trans
    return (w[..., None] * rgb).sum(1) + (1 - w.sum(1, keepdim=True))


@torch.no_grad()
def update_occupancy(field, occupancy, density):
    axis = (torch.arange(64, device=density.device) + 0.5) / 64 * 2 - 1
    pts = torch.cartesian_prod(axis, axis, axis)
    pts = pts + (torch.rand_like(pts) - 0.5) / 32
    new = torch.cat([field.sigma(p)[0] for p in pts.split(65536)]).view(64, 64, 64)
    density.mul_(0.95).copy_(torch.maximum(density, new))
    occupancy.copy_(density > min(0.5, density.mean().item()))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rays", type=int, default=8192)
    ap.add_argument("--samples", type=int, default=96)
    ap.add_argument("--steps", type=int, default=600)
    ap.add_argument("--size", type=int, default=200)
    ap.add_argument("--views", type=int, default=40)
    ap.add_argument("--log2-size", type=int, default=19)
    ap.add_argument("--eval-every", type=int, default=200)
    a = ap.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    centres, radii = torch.rand(12, 3, device=device) * 1.3 - 0.65, torch.rand(12, device=device) * 0.15 + 0.1
    colors = torch.rand(12, 3, device=device)
    rays = [camera_rays(2 * math.pi * k / a.views, 0.2 + 0.5 * math.sin(3 * k), a.size, device) for k in range(a.views)]
    O, D = torch.cat([r[0] for r in rays]), torch.cat([r[1] for r in rays])
    RGB = trace_spheres(O, D, centres, radii, colors)
    test = [camera_rays(0.4 + k, 0.35, a.size, device) for k in range(3)]

    field = Field(a.log2_size).to(device)
    occupancy = torch.ones(64, 64, 64, dtype=torch.bool, device=device)
    density = torch.zeros(64, 64, 64, device=device)
    opt = torch.optim.Adam(field.parameters(), lr=1e-2, betas=(0.9, 0.99), eps=1e-15)
    sched = torch.optim.lr_scheduler.MultiStepLR(opt, [a.steps // 2, a.steps * 3 // 4], 0.33)
    scaler = torch.amp.GradScaler(device.type, init_scale=1024)
    for step in range(1, a.steps + 1):
        pick = torch.randint(0, len(O), (a.rays,), device=device)
        with torch.autocast(device.type, dtype=torch.float16):
            out = render(field, occupancy, O[pick], D[pick], a.samples, True)
            loss = F.smooth_l1_loss(out, RGB[pick], beta=0.1)
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        sched.step()
        if step % 16 == 0 and step > 100:
            update_occupancy(field, occupancy, density)
        if step % a.eval_every == 0:
            psnr = []
            with torch.no_grad(), torch.autocast(device.type, dtype=torch.float16):
                for o, d in test:
                    image = torch.cat([render(field, occupancy, oo, dd, 2 * a.samples, False)
                                       for oo, dd in zip(o.split(8192), d.split(8192))])
                    mse = F.mse_loss(image.float(), trace_spheres(o, d, centres, radii, colors))
                    psnr.append(-10 * torch.log10(mse).item())
            print(f"step {step} loss {loss.item():.5f} psnr {sum(psnr) / len(psnr):.2f} "
                  f"occupied {occupancy.float().mean().item():.3f}", flush=True)


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
