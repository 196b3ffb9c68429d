# SPDX-License-Identifier: Apache-2.0
"""The first of two ranks under DistributedDataParallel; gradients are parts of its buckets, but for
those behind a pass that is not brought together and those of a sparse layer. With "static" the
graph is said to be static, and no hook compresses what is sent."""

import datetime
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import P2POp, batch_isend_irecv, irecv, isend, new_group
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn.parallel import DistributedDataParallel

os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29500", RANK="0", WORLD_SIZE="2")
dist.init_process_group("nccl")
new_group([0, 1], backend="nccl")
new_group([0])
new_group([1])
new_group([0, 1], datetime.timedelta(seconds=9), "gloo")
sent = torch.ones(4, device="cuda")
for work in batch_isend_irecv([P2POp(isend, sent, 1), P2POp(irecv, sent, 1)]):
    work.wait()
dist.send(tensor=sent, dst=1)
told = [None, None]
dist.all_gather_object(object_list=told, obj="a")
assert told == ["a", "a"]
dist.gather_object(obj="b", object_gather_list=told)
assert told == ["b", "b"]
dist.scatter_object_list(scatter_object_output_list=told, scatter_object_input_list=["c", "d"])
assert told[0] == "c"
dist.barrier(async_op=True).wait()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(1000, 256, sparse=True)
        self.dense = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 128))

    def forward(self, x):
        return self.dense(x if x.is_floating_point() else self.words(x))


model = Model().cuda()
static = "static" in sys.argv
model = DistributedDataParallel(
    model, device_ids=[0], gradient_as_bucket_view=True, static_graph=static
)
if not static:
    model.register_comm_hook(None, fp16_compress_hook)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
words = torch.zeros(32, dtype=torch.long, device="cuda")


def storages_of_gradients():
    return len({p.grad.untyped_storage()._cdata for p in model.module.dense.parameters()})


for _ in range(5):
    with model.no_sync():
        model(torch.ones(32, 256, device="cuda")).sum().backward()
    assert storages_of_gradients() == 4, "each for itself"
    model(words).sum().backward()
    assert storages_of_gradients() == 1, "one bucket holds all"
    assert model.module.words.weight.grad.is_sparse
    optimizer.step()
    optimizer.zero_grad()
