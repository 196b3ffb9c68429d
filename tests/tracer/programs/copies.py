# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel, round a model whose optimizer is made before it."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WIDE, NARROW, ROWS = 270, 130, 16


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Sequential(nn.Linear(NARROW, WIDE), nn.ReLU(), nn.Linear(WIDE, NARROW))]
        layers += [nn.Sequential(nn.Linear(NARROW, WIDE), nn.ReLU(), nn.Linear(WIDE, NARROW))]
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x


dist.init_process_group("nccl")
model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters())
model = DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])
for _ in range(6):
    with model.no_sync():
        model(torch.ones(ROWS, NARROW, device="cuda")).sum().backward()
    model(torch.ones(ROWS, NARROW, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
