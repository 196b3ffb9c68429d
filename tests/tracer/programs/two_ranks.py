# SPDX-License-Identifier: Apache-2.0
"""The first of two ranks under DistributedDataParallel; gradients are parts of its buckets."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29500", RANK="0", WORLD_SIZE="2")
dist.init_process_group("nccl")
dist.new_group([0, 1])
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 128)).cuda()
model = DistributedDataParallel(model, device_ids=[0], gradient_as_bucket_view=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    model(torch.ones(32, 256, device="cuda")).sum().backward()
    shared = {p.grad.untyped_storage()._cdata for p in model.parameters()}
    assert len(shared) == 1, "one bucket holds all"
    optimizer.step()
    optimizer.zero_grad()
