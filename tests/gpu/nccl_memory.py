#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What NCCL takes on each of two GPUs beside PyTorch's allocator, act by act: data/gpu_memory.toml,
nccl_memory. Nothing else may run on them.

nccl_memory.py [SERIES...]"""

import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing

# Each in two processes of its own, which are connected anew.
SERIES = {
    "collectives": "init all_reduce all_gather reduce_scatter broadcast barrier",
    "sends": "init all_reduce sendrecv all_to_all",
    "groups": "init all_reduce group.all_reduce group.all_gather group.sendrecv group.all_to_all",
    "device_id": "init_id sendrecv all_to_all all_reduce group.all_reduce group.batch",
    "exchange": "init all_to_all sendrecv all_reduce",
    "batch": "init batch all_reduce",
    "scatter": "init all_reduce scatter",
    "mesh": "mesh mesh.all_reduce mesh.all_gather",
    "end": "init all_reduce all_to_all destroy",
}


def beside():
    torch.cuda.synchronize()
    time.sleep(0.3)
    free, total = torch.cuda.mem_get_info()
    return (total - free - torch.cuda.memory_reserved()) >> 20


class Acts:
    def __init__(self, rank):
        self.rank, self.other = rank, 1 - rank
        self.x = torch.ones(1024, device="cuda")
        self.twice = torch.empty(2048, device="cuda")
        self.group = None

    def init(self):
        dist.init_process_group("nccl")

    def init_id(self):
        dist.init_process_group("nccl", device_id=torch.device("cuda", self.rank))

    def mesh(self):
        from torch.distributed.device_mesh import init_device_mesh

        mesh = init_device_mesh("cuda", (1, 2), mesh_dim_names=("whole", "part"))
        self.group = mesh["part"].get_group()

    def destroy(self):
        dist.destroy_process_group()

    def all_reduce(self):
        dist.all_reduce(self.x, group=self.group)

    def all_gather(self):
        dist.all_gather_into_tensor(self.twice, self.x, group=self.group)

    def reduce_scatter(self):
        dist.reduce_scatter_tensor(self.x[:512], self.x, group=self.group)

    def broadcast(self):
        dist.broadcast(self.x, 0, group=self.group)

    def barrier(self):
        dist.barrier()

    def scatter(self):
        parts = [self.x, self.x] if self.rank == 0 else None
        dist.scatter(torch.empty_like(self.x), parts, src=0)

    def sendrecv(self):
        for turn in (0, 1):
            if self.rank == turn:
                dist.send(self.x, self.other, group=self.group)
            else:
                dist.recv(self.x, self.other, group=self.group)

    def batch(self):
        out = torch.empty_like(self.x)
        sent = dist.P2POp(dist.isend, self.x, self.other, self.group)
        received = dist.P2POp(dist.irecv, out, self.other, self.group)
        for work in dist.batch_isend_irecv([sent, received]):
            work.wait()

    def all_to_all(self):
        dist.all_to_all_single(torch.empty_like(self.x), self.x, group=self.group)

    def run(self, act):
        kind, _, name = act.rpartition(".")
        if kind == "group":
            self.group = dist.new_group([0, 1])
        getattr(self, name)()
        if kind == "group":
            self.group = None


def measure(rank, series, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank))
    torch.cuda.set_device(rank)
    acts = Acts(rank)
    last = beside()
    said = ["%s: rank %d: context %d" % (series, rank, last)]
    for act in SERIES[series].split():
        acts.run(act)
        now = beside()
        said.append("%s %+d" % (act, now - last))
        last = now
    print(", ".join(said) + "; in all %d MiB" % last, flush=True)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    for place, name in enumerate(sys.argv[1:] or SERIES):
        torch.multiprocessing.spawn(measure, args=(name, 29500 + place), nprocs=2)
