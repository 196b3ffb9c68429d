# SPDX-License-Identifier: Apache-2.0
"""One stage of a pipeline: stage.py RANK. What it receives is as wide as the stage before says."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

rank = int(sys.argv[1])
os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29500", RANK=str(rank), WORLD_SIZE="2")
dist.init_process_group("nccl")
torch.cuda.set_device(0)
device = torch.device("cuda", 0)
part = nn.Linear(64, 192) if rank == 0 else nn.Linear(192, 32)
stage = PipelineStage(part.cuda(), rank, 2, device)
schedule = Schedule1F1B(stage, 4, loss_fn=lambda out, wanted: (out - wanted).square().mean())
optimizer = torch.optim.AdamW(part.parameters())
for _ in range(4):
    if rank == 0:
        schedule.step(torch.ones(32, 64, device="cuda"))
    else:
        schedule.step(target=torch.ones(32, 32, device="cuda"), losses=[])
    optimizer.step()
    optimizer.zero_grad()
