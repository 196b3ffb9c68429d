# SPDX-License-Identifier: Apache-2.0
"""torch.distributed in one process."""

import os
import sys

from .parallel import patch_parallel
from .communicators import Communicators
from .ranks import counted_nccl, joined
from .sent_objects import patch_objects


class Done:
    """The work of a collective that nobody has to wait for."""

    def wait(self, *args, **kwargs):
        return True

    is_completed = is_success = wait


# What PyTorch itself has for tests: a group whose collectives return at once. Of a program that
# starts several processes the first that allocates is traced; alone, a program is a world of one.
def patch_distributed(tracer):
    torch = tracer.torch
    dist = torch.distributed
    if not dist.is_available():
        return
    from torch.distributed import distributed_c10d as c10d

    real_init = c10d.init_process_group
    communicators = tracer.communicators = Communicators(tracer)
    asked = []

    def init(
        backend=None,
        init_method=None,
        timeout=None,
        world_size=-1,
        rank=-1,
        store=None,
        *args,
        **kwargs,
    ):
        from torch.testing._internal.distributed.fake_pg import FakeStore

        world_size = world_size if world_size > 0 else int(os.environ.get("WORLD_SIZE", 1))
        rank = rank if rank >= 0 else int(os.environ.get("RANK", 0))
        joined(tracer, rank, world_size)
        asked.append(str(backend or "nccl"))
        kind, said = "assumed", "torch.distributed was traced as one process without NCCL"
        if world_size > 1:
            kind, said = "several_processes", "process %d of %d; " % (rank, world_size)
            if takes_nccl(backend):
                said += counted_nccl(world_size)
                tracer.file.fact("world", world_size)
            else:
                said += "its group is not of NCCL"
        tracer.file.note(kind, said, tracer.source())
        real_init(backend="fake", store=FakeStore(), rank=rank, world_size=world_size)
        communicators.begin(takes_nccl(backend), kwargs.get("device_id", (args[2:3] or [None])[0]))

    def barrier(group=None, async_op=False, *args, **kwargs):
        communicators.ring(group)
        return Done() if async_op else None

    for name, function in (
        ("init_process_group", init),
        ("monitored_barrier", lambda *a, **k: None),
        ("barrier", barrier),
        ("get_backend", lambda *a, **k: asked[-1].split(":")[-1] if asked else "nccl"),
    ):
        for module in (c10d, dist, *meshes()):
            if module in (c10d, dist) or hasattr(module, name):
                setattr(module, name, function)
    patch_objects(tracer, (c10d, dist, *meshes()))
    patch_groups(tracer, c10d, lambda backend: takes_nccl(backend or (asked and asked[-1])))
    patch_parallel(tracer)


# "nccl", "cpu:gloo,cuda:nccl"; without a name PyTorch takes NCCL on GPUs.
def takes_nccl(backend):
    return not backend or "nccl" in str(backend).lower()


# The functions are replaced once and before the program takes them by name: `P2POp` compares what
# it is given with `isend`.
def patch_groups(tracer, c10d, is_nccl):
    real_group, real_batch = c10d.new_group, c10d.batch_isend_irecv
    communicators = tracer.communicators

    def new_group(ranks=None, timeout=None, backend=None, pg_options=None, *args, **kwargs):
        group = real_group(ranks, timeout, None, None, *args, **kwargs)
        communicators.made(group, is_nccl(backend))
        return group

    def batch_isend_irecv(p2p_op_list):
        with communicators.one_batch():
            return real_batch(p2p_op_list)

    for module in (c10d, tracer.torch.distributed, *meshes()):
        for function in (new_group, batch_isend_irecv):
            if hasattr(module, function.__name__):
                setattr(module, function.__name__, function)


# A mesh of devices makes groups by names that it bound when it was imported.
def meshes():
    module = sys.modules.get("torch.distributed.device_mesh")
    return (module,) if module else ()
