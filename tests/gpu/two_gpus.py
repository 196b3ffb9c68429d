#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/two_gpus.py [one|ddp]: a snapshot with traces of two devices, for `cufit mem record`.

`one`: one process trains a model whose halves are on two GPUs. `ddp`: for `torchrun --nproc-per-node 2`; rank 1 gets longer
batches than rank 0 and runs out of memory at its limit of 2 GiB.
"""
import os
import sys

import torch

from oom_workload import Model, batch, limit, loss_of, nn, train


class TwoHalves(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)) for _ in range(4)]).to("cuda:0")
        self.second = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)) for _ in range(6)]).to("cuda:1")

    def forward(self, x):
        return self.second(self.first(x).to("cuda:1"))


def one():
    torch.manual_seed(0)
    model = TwoHalves()
    optimizer = torch.optim.AdamW(model.parameters())
    for size in (512, 512, 2048, 512):
        model(torch.randn(size, 1024, device="cuda:0")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def ddp():
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl")
    limit()
    model = nn.parallel.DistributedDataParallel(Model().to(rank), device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters())
    lengths = [128, 128, 128, 128 if rank == 0 else 2000, 128]
    train(model, optimizer, (batch(8, length) for length in lengths))


if __name__ == "__main__":
    {"one": one, "ddp": ddp}[sys.argv[1]]()
