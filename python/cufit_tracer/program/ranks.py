# SPDX-License-Identifier: Apache-2.0
"""The rank that is traced: what its group is told, and whom it sends to."""

import os

from .launchers import PLACED, asked_rank, number


# Of processes that the program starts itself (multiprocessing.Process) one is traced, and the
# others end where they join the group.
def joined(tracer, rank, world):
    import multiprocessing

    alone = multiprocessing.parent_process() is None
    if not alone and rank != asked_rank(world) and not tracer.file.on_disk:
        os._exit(0)
    local = number(os.environ.get(PLACED)) or world
    for key, value in (("rank", rank), ("world_size", world), ("node_size", min(local, world))):
        tracer.file.fact(key, value)


def counted_nccl(world):
    if world == 2:
        return "NCCL is counted as measured with two GPUs"
    said = "NCCL is reckoned by its source and by reports: "
    return said + "with more than two GPUs it was not measured"


# Each rank that this one sends to, or receives from, has buffers of its own; an all-to-all reaches
# all ranks of the node.
def answer_between(tracer, c10d):
    reached = set()

    def reaches(others):
        reached.update(others)
        tracer.file.fact("nccl_between", len(reached))

    def one(real, name):
        def run(*args, **kwargs):
            named = [kwargs.get(key) for key in (name, "group_" + name)]
            reaches({next((rank for rank in (*args[1:2], *named) if rank is not None), "any")})
            return real(*args, **kwargs)

        return run

    def several(real):
        def run(*args, **kwargs):
            local = number(os.environ.get(PLACED)) or c10d.get_world_size()
            if c10d.get_world_size() > 1:
                reaches(range(1, min(local, c10d.get_world_size())))
            return real(*args, **kwargs)

        return run

    found = {
        name: one(getattr(c10d, name), key)
        for name, key in (("send", "dst"), ("isend", "dst"), ("recv", "src"), ("irecv", "src"))
    }
    for name in ("all_to_all", "all_to_all_single"):
        found[name] = several(getattr(c10d, name))
    return found
