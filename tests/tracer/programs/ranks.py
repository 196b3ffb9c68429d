# SPDX-License-Identifier: Apache-2.0
"""Ranks under DistributedDataParallel, which say where they are. With "spawn" or "processes" the
program starts them itself."""

import argparse
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def train(rank, world):
    node = torch.cuda.device_count()
    torch.cuda.set_device(rank % node)
    dist.init_process_group("nccl", rank=rank, world_size=world)
    device = torch.empty(1, device="cuda").device
    print(
        "rank %d of %d: %s of %d" % (dist.get_rank(), dist.get_world_size(), device, node),
        flush=True,
    )
    model = torch.nn.Linear(64, 64).cuda()
    assert model.weight.device == device, model.weight.device
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[device.index])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        model(torch.ones(8, 64)).sum().backward()  # from the host's memory
        optimizer.step()
        optimizer.zero_grad()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("how", nargs="?", default="")
    parser.add_argument("--local-rank", "--local_rank", type=int)
    arguments = parser.parse_args()
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "29500")
    world = torch.cuda.device_count()
    if arguments.how == "spawn":
        mp.spawn(train, args=(world,), nprocs=world)
    elif arguments.how == "processes":
        processes = [mp.Process(target=train, args=(rank, world)) for rank in range(world)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        sys.exit(max(process.exitcode for process in processes))
    else:
        rank = int(os.environ["RANK"])
        assert arguments.local_rank in (None, int(os.environ["LOCAL_RANK"]))
        train(rank, int(os.environ["WORLD_SIZE"]))


if __name__ == "__main__":
    main()
