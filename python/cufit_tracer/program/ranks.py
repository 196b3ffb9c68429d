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
