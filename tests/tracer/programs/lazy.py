# SPDX-License-Identifier: Apache-2.0
"""Modules that learn their sizes from the first batch."""

import torch
from torch import nn

model = nn.Sequential(
    nn.LazyConv1d(8, 3), nn.LazyBatchNorm1d(), nn.Flatten(), nn.LazyLinear(4)
).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    model(torch.zeros(16, 1, 32, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
