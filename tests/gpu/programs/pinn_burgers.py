# SPDX-License-Identifier: Apache-2.0
"""A physics-informed network for Burgers' equation: derivatives through autograd with create_graph, collocation points, boundary terms."""
import argparse
import math
import os

import torch
import torch.nn as nn

SMALL = os.environ.get("SMALL") == "1"


class Net(nn.Module):
    def __init__(self, width=256, depth=8):
        super().__init__()
        self.first = nn.Linear(2, width)
        self.hidden = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.last = nn.Linear(width, 1)

    def forward(self, t, x):
        h = torch.tanh(self.first(torch.cat([t, x], 1)))
        for layer in self.hidden:
            h = h + torch.tanh(layer(h))
        return self.last(h)


def grad(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True, retain_graph=True)[0]


def residual(net, t, x, nu=0.01 / math.pi):
    t.requires_grad_(True)
    x.requires_grad_(True)
    u = net(t, x)
    u_t, u_x = grad(u, t), grad(u, x)
    return u_t + u * u_x - nu * grad(u_x, x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=40000, help="collocation points")
    args = parser.parse_args()
    torch.manual_seed(0)
    net = Net(32 if SMALL else 256).cuda()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    n = args.batch_size
    for step in range(5):
        t, x = torch.rand(n, 1).cuda(), (torch.rand(n, 1) * 2 - 1).cuda()
        physics = residual(net, t, x).pow(2).mean()
        x0 = (torch.rand(n // 4 + 1, 1) * 2 - 1).cuda()
        initial = (net(torch.zeros_like(x0), x0) + torch.sin(math.pi * x0)).pow(2).mean()
        tb = torch.rand(n // 4 + 1, 1).cuda()
        border = net(tb, torch.ones_like(tb)).pow(2).mean() + net(tb, -torch.ones_like(tb)).pow(2).mean()
        loss = physics + 10 * initial + border
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        print(step, physics.item(), initial.item(), border.item())


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
