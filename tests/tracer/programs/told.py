# SPDX-License-Identifier: Apache-2.0
"""told.py RANK: rank 0 makes a configuration and tells the others, each its own width, too. Where
rank 2 tells something, rank 0 was traced before."""

import dataclasses
import os
import sys

import torch
import torch.distributed as dist

rank, world = int(sys.argv[1]), 4
os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29500", RANK=str(rank), WORLD_SIZE="4")
dist.init_process_group("nccl")


@dataclasses.dataclass
class Config:
    wide: int
    mask: torch.Tensor
    weight: torch.Tensor


told = [None, None]
if rank == 0:
    mask = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)
    told = [Config(320, mask, torch.ones(4, 5, device="cuda")), {"layers": 3}]
dist.broadcast_object_list(told, src=0)
config, more = told
assert more == {"layers": 3} and config.mask.tolist() == [[0, 1, 2], [3, 4, 5]]
assert config.weight.device.type == "cuda" and config.weight.shape == (4, 5)
pair = dist.new_group([rank ^ 1, rank]) if rank > 1 else dist.new_group([0, 1])
again = ["first" if rank == 0 else ""]
dist.broadcast_object_list(again, group_src=0, group=pair)
own = [None]
dist.scatter_object_list(own, [16, 32, 48, 64] if rank == 0 else None, src=0)
late = ["of rank %d" % rank]
dist.broadcast_object_list(late, src=2)
print(again, late)
model = torch.nn.Linear(config.wide, own[0]).cuda()
optimizer = torch.optim.SGD(model.parameters())
for _ in range(3):
    model(torch.ones(8, config.wide, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
