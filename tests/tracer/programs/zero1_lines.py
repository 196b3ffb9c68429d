# SPDX-License-Identifier: Apache-2.0
"""The lines that `cufit fit --plan` prints for ZeRO-1, in a program of two groups and a scheduler:
it trains as without them. Runs without the tracer."""

import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def trained(zero1):
    torch.manual_seed(0)
    model = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
    )
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    groups = [
        {"params": matrices, "weight_decay": 0.1, "lr": 0.3},
        {"params": vectors, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.01, betas=(0.8, 0.9))
    if zero1:
        optimizer = with_states_dealt_out(optimizer)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 1))
    data = torch.randn(4, 8)
    for _ in range(4):
        optimizer.zero_grad()
        model(data).square().sum().backward()
        optimizer.step()
        scheduler.step()
    options = [
        {k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups
    ]
    return [p.detach().clone() for p in model.parameters()], options


# fmt: off
def with_states_dealt_out(optimizer):
    from torch.distributed.optim import ZeroRedundancyOptimizer
    optimizer = ZeroRedundancyOptimizer(optimizer.param_groups, optimizer_class=type(optimizer))
    return optimizer
# fmt: on


with tempfile.NamedTemporaryFile() as file:
    dist.init_process_group("gloo", init_method="file://" + file.name, rank=0, world_size=1)
    (weights, options), (dealt, dealt_options) = trained(False), trained(True)
    same = all(torch.equal(one, other) for one, other in zip(weights, dealt))
    print("trains the same:", same and options == dealt_options and len(options) == 2)
    dist.destroy_process_group()
