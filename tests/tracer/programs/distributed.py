# SPDX-License-Identifier: Apache-2.0
"""A world of one process under DistributedDataParallel."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

os.environ.setdefault("MASTER_ADDR", "localhost")
os.environ.setdefault("MASTER_PORT", "29500")
dist.init_process_group("nccl", rank=0, world_size=1)
torch.cuda.set_device(0)
model = DistributedDataParallel(
    nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 16)).cuda(), device_ids=[0]
)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    loss = model(torch.randn(32, 256, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    total = loss.detach().clone()
    dist.all_reduce(total)
    objects = [None]
    dist.all_gather_object(objects, {"rank": dist.get_rank()})
dist.barrier()
print(dist.get_backend(), objects)
dist.destroy_process_group()
