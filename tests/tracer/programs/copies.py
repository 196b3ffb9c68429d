# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel, round a model whose optimizer is made before it."""

import torch
import torch.distributed as dist
from layered import NARROW, ROWS, Model
from torch.nn.parallel import DistributedDataParallel

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
