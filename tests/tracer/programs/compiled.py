# SPDX-License-Identifier: Apache-2.0
"""torch.compile of a small model."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 128)).cuda()
model = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    x = torch.randn(32, 128, device="cuda")
    loss = (model(x).softmax(-1) * x).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
