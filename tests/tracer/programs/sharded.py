# SPDX-License-Identifier: Apache-2.0
"""One rank of a model that is dealt out: sharded.py HOW RANK WORLD. Rows of the weights do not
divide evenly."""

import os
import sys

import torch
import torch.distributed as dist
from layered import NARROW, ROWS, Model
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

how, rank, world = sys.argv[1], sys.argv[2], sys.argv[3]
os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29500", RANK=rank, WORLD_SIZE=world)


def fsdp2(model, **wanted):
    from torch.distributed.fsdp import fully_shard

    for layer in model.layers:
        fully_shard(layer, **wanted)
    return fully_shard(model, **wanted)


def fsdp1(model):
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    device, policy = torch.device("cuda", 0), ModuleWrapPolicy({nn.Sequential})
    return FullyShardedDataParallel(
        model, auto_wrap_policy=policy, device_id=device, use_orig_params=True
    )


def tensor_parallel(model):
    from torch.distributed.tensor import parallel

    mesh = init_device_mesh("cuda", (int(world),))
    for layer in model.layers:
        plan = {"0": parallel.ColwiseParallel(), "2": parallel.RowwiseParallel()}
        parallel.parallelize_module(layer, mesh, plan)
    return model


def made(how):
    if how == "meta":  # as torchtitan starts
        with torch.device("meta"):
            model = Model()
        fsdp2(model).to_empty(device="cuda")
        for layer in model.layers:
            layer[0].reset_parameters()
        return model
    if how == "hybrid":
        mesh = init_device_mesh("cuda", (2, int(world) // 2), mesh_dim_names=("dp", "shard"))
        return fsdp2(Model().cuda(), mesh=mesh)
    if how == "offloaded":
        from torch.distributed.fsdp import CPUOffloadPolicy

        return fsdp2(Model(), offload_policy=CPUOffloadPolicy())
    if how == "kept":
        return fsdp2(Model().cuda(), reshard_after_forward=False)
    if how == "tensor":
        return tensor_parallel(Model().cuda())
    return fsdp1(Model()) if how == "fsdp1" else fsdp2(Model().cuda())


dist.init_process_group("nccl")
model = made(how)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    model(torch.ones(ROWS, NARROW, device="cuda")).sum().backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
