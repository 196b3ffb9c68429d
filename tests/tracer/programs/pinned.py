# SPDX-License-Identifier: Apache-2.0
"""Pinned memory is the host's: nothing of it is on the device, and a copy from it is."""

import torch
from torch import nn

made = torch.empty(1 << 16, pin_memory=True)
ones = torch.ones(1 << 12).pin_memory()
held = torch.zeros(1 << 14, pin_memory=True)
like = torch.empty_like(held, pin_memory=True)
print(made.device, ones.device, ones.is_pinned(), like.device)
batch = torch.tensor([1.0, 2.0], pin_memory=True)
model = nn.Linear(1 << 12, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    x = ones.to("cuda", non_blocking=True)
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    print(held.sum().item(), batch.sum().item())
again = torch.ops.aten._pin_memory.default(made)
print(again.data_ptr() == made.data_ptr(), torch.ops.aten.is_pinned.default(made))
