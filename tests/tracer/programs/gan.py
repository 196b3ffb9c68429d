# SPDX-License-Identifier: Apache-2.0
"""Two optimizers, of which one steps at every second turn."""

import torch
from torch import nn

critic, generator = (
    nn.Linear(64, 1).cuda(),
    nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64)).cuda(),
)
first, second = torch.optim.Adam(critic.parameters()), torch.optim.Adam(generator.parameters())
for step in range(20):
    real, noise = torch.randn(32, 64).cuda(), torch.randn(32, 16, device="cuda")
    score = critic(generator(noise).detach())
    mixed = (real * 0.5).requires_grad_()
    slope = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)[0]
    (score.mean() - critic(real).mean() + slope.norm(2, 1).mean()).backward()
    first.step()
    first.zero_grad()
    if step % 2:
        (-critic(generator(noise)).mean()).backward()
        second.step()
        second.zero_grad()
