# SPDX-License-Identifier: Apache-2.0
"""FSDP at every number of ranks from 2 to 64, for the last of them: what is on the device
follows from the sizes alone."""

import gc
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29500")
WIDE, NARROW, FLOAT = 270, 130, 4
STEPPED = (2, 3, 8, 64)


# By dimension 0 in equal parts; the last ones are shorter or empty, and padded.
def shard(shape, world):
    rest = 1
    for length in shape[1:]:
        rest *= length
    return -(-shape[0] // world) * rest * FLOAT


# What this rank holds of it without padding.
def part(shape, world, rank):
    rows = -(-shape[0] // world)
    return max(min(shape[0] - rank * rows, rows), 0) * (shard(shape, 1) // shape[0])


def run(world, rank):
    dist.init_process_group("nccl", rank=rank, world_size=world)
    model = nn.Sequential(nn.Linear(NARROW, WIDE), nn.Linear(WIDE, NARROW)).cuda()
    shapes = [p.shape for p in model.parameters()]
    fully_shard(model)
    gc.collect()
    shards = sum(shard(shape, world) for shape in shapes)
    held = torch.cuda.memory_allocated()
    assert held == shards, (world, rank, held, shards)
    if world in STEPPED:
        step(model, shapes, shards, world, rank)
    del model
    gc.collect()
    dist.destroy_process_group()


def step(model, shapes, shards, world, rank):
    held = torch.cuda.memory_allocated()
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(4, NARROW, device="cuda")).sum().backward()
    gradients = torch.cuda.memory_allocated() - held
    assert gradients == shards, ("one buffer holds all gradients", world, rank, gradients)
    optimizer.step()
    optimizer.zero_grad()
    gc.collect()
    states = 2 * sum(part(shape, world, rank) for shape in shapes)
    held = torch.cuda.memory_allocated()
    assert held == shards + states, (world, rank, held, shards, states)


for world in range(2, 65):
    run(world, world - 1)
run(64, 0)
print("worlds: done")
