# SPDX-License-Identifier: Apache-2.0
"""What DistributedDataParallel runs, dealt out otherwise: by FSDP2 in its place, or with states of
the optimizer on one rank each, as ZeroRedundancyOptimizer has them."""

import contextlib
import os

from ..program.parallel import Nothing


class Dealt:
    """How the variant is dealt out; nothing of it: as the program does it."""

    def __init__(self, names):
        # A model without a script deals itself out (python/cufit_model/ranks.py).
        own = bool(os.environ.get("CUFIT_FIT_MODEL"))
        ways = [name.partition(":") for name in names if not own]
        way = next((way for way in ways if way[0] in ("fsdp", "hsdp")), None)
        self.zero1 = "zero1" in names
        self.sharded = way is not None
        self.reshard = self.sharded and way[2] != "no-reshard"
        self.group = int(way[2]) if self.sharded and way[0] == "hsdp" else 0
        self.offload = "offload" in names
        self.half = next(
            (half for half in ("bf16", "fp16") if half in names or "cast_" + half in names), None
        )


def patch_dealing(tracer, variant):
    torch = tracer.torch
    if not torch.distributed.is_available():
        return
    from torch.nn.parallel import DistributedDataParallel as Parallel

    real_init, real_forward, real_apart = Parallel.__init__, Parallel.forward, Parallel.no_sync
    dealt = variant.dealt

    def init(self, module, *args, **kwargs):
        variant.facts["data_parallel"] = "ddp"
        variant.facts["data_parallel_at"] = tracer.source()
        if not dealt.sharded:
            return real_init(self, module, *args, **kwargs)
        torch.nn.Module.__init__(self)
        shard(torch, variant, module)
        self.module = module
        self.reducer = self.logger = Nothing()
        self.require_backward_grad_sync = True
        return None

    def forward(self, *args, **kwargs):
        if not dealt.sharded:
            return real_forward(self, *args, **kwargs)
        return self.module(*args, **kwargs)

    @contextlib.contextmanager
    def apart(self):
        if not dealt.sharded:
            with real_apart(self):
                yield
            return
        self.module.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            self.module.set_requires_gradient_sync(True)

    Parallel.__init__, Parallel.forward, Parallel.no_sync = init, forward, apart


# Optimizers that the program has made already are given the shards.
def shard(torch, variant, module):
    from torch.distributed import fsdp
    from torch.distributed.device_mesh import init_device_mesh

    dealt, before = variant.dealt, dict(module.named_parameters())
    wanted = {"reshard_after_forward": dealt.reshard}
    if dealt.half:
        half = torch.bfloat16 if dealt.half == "bf16" else torch.float16
        wanted["mp_policy"] = fsdp.MixedPrecisionPolicy(
            param_dtype=half, reduce_dtype=torch.float32
        )
    if dealt.offload:
        wanted["offload_policy"] = fsdp.CPUOffloadPolicy()
    world = torch.distributed.get_world_size()
    if dealt.group:
        shape = (world // dealt.group, dealt.group)
        wanted["mesh"] = init_device_mesh("cuda", shape, mesh_dim_names=("replicate", "shard"))
    for _, blocks in variant.repeated_blocks(module, ""):
        for block in blocks:
            fsdp.fully_shard(block, **wanted)
    fsdp.fully_shard(module, **wanted)
    after = dict(module.named_parameters())
    shards = {id(old): after[name] for name, old in before.items() if name in after}
    for optimizer in list(variant.made):
        variant.facts["optimizer_first"] = 1
        for group in optimizer.param_groups:
            group["params"] = [shards.get(id(old), old) for old in group["params"]]


# Whole parameters go to the rank that has least, the largest first.
def own_parameters(torch, optimizer):
    world, rank = torch.distributed.get_world_size(), torch.distributed.get_rank()
    sizes, parts = [0] * world, []
    for group in optimizer.param_groups:
        own = set()
        for parameter in sorted(group["params"], key=lambda p: p.numel(), reverse=True):
            least = sizes.index(min(sizes))
            sizes[least] += parameter.numel()
            if least == rank:
                own.add(id(parameter))
        parts.append([parameter for parameter in group["params"] if id(parameter) in own])
    return parts


def step_of_own(torch, optimizer, step):
    whole = [group["params"] for group in optimizer.param_groups]
    for group, own in zip(optimizer.param_groups, own_parameters(torch, optimizer)):
        group["params"] = own
    try:
        return step()
    finally:
        for group, all_of_it in zip(optimizer.param_groups, whole):
            group["params"] = all_of_it
