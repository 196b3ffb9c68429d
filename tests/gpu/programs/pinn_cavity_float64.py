# Physics-informed network for the steady lid-driven cavity (Navier-Stokes), double precision.
# Adam with resampled collocation points, residual-based refinement of part of the points.
import os
import time

import torch
import torch.nn as nn

torch.set_default_dtype(torch.float64)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(11)

N_INSIDE = int(os.environ.get("N_INSIDE", 20000))
N_WALL = int(os.environ.get("N_WALL", 4000))
WIDTH = int(os.environ.get("WIDTH", 128))
DEPTH = int(os.environ.get("DEPTH", 6))
STEPS = int(os.environ.get("STEPS", 500))
RESAMPLE = int(os.environ.get("RESAMPLE", 50))
REPORT = int(os.environ.get("REPORT", 100))
REYNOLDS = 100.0


class Sine(nn.Module):
    def forward(self, x):
        return torch.sin(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Linear(2, WIDTH), Sine()]
        for _ in range(DEPTH - 1):
            layers += [nn.Linear(WIDTH, WIDTH), nn.Tanh()]
        layers.append(nn.Linear(WIDTH, 3))
        self.body = nn.Sequential(*layers)
        for m in self.body:
            if isinstance(m, nn.Linear):
                nn.init.xavier_normal_(m.weight)
                nn.init.zeros_(m.bias)

    def forward(self, xy):
        return self.body(2 * xy - 1).unbind(1)


def grad(f, xy, create=True):
    return torch.autograd.grad(f, xy, torch.ones_like(f), create_graph=create, retain_graph=True)[0]


def residuals(net, xy, create=True):
    xy = xy.requires_grad_(True)
    u, v, p = net(xy)
    du, dv, dp = grad(u, xy), grad(v, xy), grad(p, xy)
    ux, uy = du[:, 0], du[:, 1]
    vx, vy = dv[:, 0], dv[:, 1]
    lap_u = grad(ux, xy, create)[:, 0] + grad(uy, xy, create)[:, 1]
    lap_v = grad(vx, xy, create)[:, 0] + grad(vy, xy, create)[:, 1]
    mx = u * ux + v * uy + dp[:, 0] - lap_u / REYNOLDS
    my = u * vx + v * vy + dp[:, 1] - lap_v / REYNOLDS
    return mx, my, ux + vy


def wall_points(n):
    s = torch.rand(n, device=device)
    side = torch.randint(0, 4, (n,), device=device)
    x = torch.where(side == 0, 0.0, torch.where(side == 1, 1.0, s))
    y = torch.where(side == 2, 0.0, torch.where(side == 3, 1.0, s))
    lid = torch.where(side == 3, 1 - (2 * x - 1) ** 8, torch.zeros_like(x))
    return torch.stack([x, y], 1), torch.stack([lid, torch.zeros_like(lid)], 1)


def inside_points(net, n):
    """Half uniform; half drawn where the residual is large, among a pool."""
    uniform = torch.rand(n // 2, 2, device=device)
    pool = torch.rand(n, 2, device=device)
    mx, my, div = residuals(net, pool, create=False)
    weight = (mx ** 2 + my ** 2 + div ** 2).detach().sqrt() + 1e-6
    pick = torch.multinomial(weight, n - n // 2, replacement=False)
    return torch.cat([uniform, pool.detach()[pick]])


net = Net().to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.998)
inside = torch.rand(N_INSIDE, 2, device=device)
grid = torch.cartesian_prod(torch.linspace(0, 1, 101), torch.linspace(0, 1, 101)).to(device)
start = time.time()
for step in range(1, STEPS + 1):
    if step % RESAMPLE == 0:
        inside = inside_points(net, N_INSIDE)
    xy_wall, uv_wall = wall_points(N_WALL)
    optimizer.zero_grad()
    mx, my, div = residuals(net, inside.detach().clone())
    pde = mx.square().mean() + my.square().mean() + div.square().mean()
    u, v, _ = net(xy_wall)
    wall = (torch.stack([u, v], 1) - uv_wall).square().mean()
    _, _, p0 = net(torch.zeros(1, 2, device=device))
    loss = pde + 10 * wall + p0.square().mean()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % REPORT == 0:
        with torch.no_grad():
            u, v, p = net(grid)
        print(f"step {step} pde {pde.item():.3e} wall {wall.item():.3e} min u {u.min().item():.4f} "
              f"max |v| {v.abs().max().item():.4f} {time.time() - start:.1f}s", flush=True)

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
