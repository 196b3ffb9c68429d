# SPDX-License-Identifier: Apache-2.0
"""Tensors that are dealt out over GPUs: shards of FSDP, DTensor, what collectives return."""

import sys

from cufit_import_hook import on_import

from ..event_file import COMMUNICATION, GATHERED


def patch_sharding(tracer):
    patch_resize(tracer)
    when_there("torch.distributed.tensor", lambda module: tracer.composed.add(module.DTensor))
    when_there("torch.distributed._functional_collectives", lambda module: waits(tracer, module))
    when_there("torch.distributed.tensor._random", lambda module: keep_states(tracer, module))
    fsdp = "torch.distributed.fsdp."
    name = fsdp + "_fully_shard._fsdp_param"
    when_there(name, lambda module: keep_padding(module.FSDPParam))
    for name, *functions in (
        (fsdp + "_fully_shard._fsdp_param_group", *GROUP),
        (fsdp + "_runtime_utils", ("_get_reduce_scatter_tensors", COMMUNICATION)),
    ):
        when_there(name, lambda module, all=functions: name_memory(tracer, module, all))
    name = "torch.distributed.optim.zero_redundancy_optimizer"
    when_there(name, lambda module: tell_that_states_differ(tracer, module))
    alloc = ("_alloc_padded_unsharded_flat_param", GATHERED)
    name = fsdp + "_flat_param"
    when_there(name, lambda module: name_memory(tracer, module.FlatParamHandle, [alloc]))


# Each parameter's state is on one rank.
def tell_that_states_differ(tracer, module):
    real = module.ZeroRedundancyOptimizer.__init__

    def init(self, *args, **kwargs):
        tracer.file.fact("ranks_differ", "states of ZeroRedundancyOptimizer")
        real(self, *args, **kwargs)

    module.ZeroRedundancyOptimizer.__init__ = init


# What these functions of FSDP2 allocate.
GROUP = (
    ("foreach_all_gather", COMMUNICATION),
    ("foreach_all_gather_copy_out", GATHERED),
    ("foreach_reduce", COMMUNICATION),
)


def name_memory(tracer, holder, functions):
    def named(real, kind):
        def run(*args, **kwargs):
            before, tracer.kind = tracer.kind, kind
            try:
                return real(*args, **kwargs)
            finally:
                tracer.kind = before

        return run

    for name, kind in functions:
        if hasattr(holder, name):
            setattr(holder, name, named(getattr(holder, name), kind))


def when_there(name, then):
    if name in sys.modules:
        then(sys.modules[name])
    else:
        on_import(name, then)


# FSDP gives the memory of gathered parameters back and takes it again by the size of their storage:
# whatever is a view of them stays one.
def patch_resize(tracer):
    Storage = tracer.torch.UntypedStorage
    real = Storage.resize_

    def resize_(self, size):
        real(self, size)
        tracer.resized(self, int(size))
        return self

    Storage.resize_ = resize_


# What a collective returns is there once it is waited for, and is the same tensor then. PyTorch's
# kernel for tensors without contents makes another one.
def waits(tracer, module):
    torch = tracer.torch
    Awaited = getattr(module, "AsyncCollectiveTensor", None)
    if Awaited is not None:
        tracer.composed.add(Awaited)
    wrap = getattr(torch.ops._c10d_functional, "_wrap_tensor_autograd", None)
    if wrap is not None and Awaited is not None:
        tracer.own_kernels[wrap.default] = Awaited
    for space in ("_c10d_functional", "c10d_functional"):
        wait = getattr(getattr(torch.ops, space), "wait_tensor", None)
        if wait is not None:
            tracer.own_kernels[wait.default] = torch.ops.aten.alias.default


# The state of the device's generator, which ranks compare, has no contents there.
def keep_states(tracer, module):
    Tracker = getattr(module, "OffsetBasedRNGTracker", None)
    if Tracker is not None and hasattr(Tracker, "_get_device_state"):
        state = tracer.torch.cuda.get_rng_state
        Tracker._get_device_state = lambda self: state()
        Tracker._set_device_state = lambda self, state: None


# A shard is padded when it is made. FSDP asks at its first forward pass whether the program has put
# another in its place by the address of its memory, which is 0 here: it would be padded again.
def keep_padding(FSDPParam):
    real = FSDPParam.reset_sharded_param

    def reset(self):
        new = getattr(self._module_info.module, self._module_info.param_name)
        part, kept = getattr(new, "_local_tensor", None), self._sharded_param_data
        if part is None or part.untyped_storage() is not kept.untyped_storage():
            return real(self)
        self.sharded_param, self._sharding_spec = new, new._spec

    FSDPParam.reset_sharded_param = reset
