# SPDX-License-Identifier: Apache-2.0
"""Tensors that are dealt out over GPUs: shards of FSDP, DTensor, what collectives return."""

from cufit_import_hook import when_imported

from ..event_file import COMMUNICATION, GATHERED


def patch_sharding(tracer):
    patch_resize(tracer)
    shard = "fsdp._fully_shard."
    for name, then in (
        ("tensor", lambda module: tracer.composed.add(module.DTensor)),
        ("tensor._random", lambda module: keep_states(tracer, module)),
        ("_functional_collectives", lambda module: follow_waits(tracer, module)),
        ("optim.zero_redundancy_optimizer", lambda module: tell_that_states_differ(tracer, module)),
        (shard + "_fsdp_param", lambda module: of_parameters(tracer, module.FSDPParam)),
        (shard + "_fsdp_param_group", lambda module: name_memory(tracer, module, FSDP2)),
        (RING, lambda module: tell_of_turns(tracer, module)),
        ("fsdp._flat_param", lambda module: name_memory(tracer, module.FlatParamHandle, FSDP1)),
        ("fsdp._runtime_utils", lambda module: name_memory(tracer, module, FSDP1)),
    ):
        when_imported("torch.distributed." + name, then)


RING = "tensor.experimental._context_parallel._attention"


# A rank takes the whole of one and half of the other, queries or keys: which, goes by its number.
def tell_of_turns(tracer, module):
    name = "_templated_ring_attention"
    real = getattr(module, name, None)

    def attention(*args, **kwargs):
        tracer.file.fact("ranks_differ", "turns of ring attention")
        return real(*args, **kwargs)

    if real is not None:
        setattr(module, name, attention)


# Each parameter's state is on one rank.
def tell_that_states_differ(tracer, module):
    real = module.ZeroRedundancyOptimizer.__init__

    def init(self, *args, **kwargs):
        tracer.file.fact("ranks_differ", "states of ZeroRedundancyOptimizer")
        real(self, *args, **kwargs)

    module.ZeroRedundancyOptimizer.__init__ = init


# What these functions allocate.
FSDP2 = (
    ("foreach_all_gather", COMMUNICATION),
    ("foreach_all_gather_copy_out", GATHERED),
    ("foreach_reduce", COMMUNICATION),
)
FSDP1 = (
    ("_alloc_padded_unsharded_flat_param", GATHERED),
    ("_get_reduce_scatter_tensors", COMMUNICATION),
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
def follow_waits(tracer, module):
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


# Where the length does not divide, the last ranks have shorter shards, and shorter states of the
# optimizer.
def of_parameters(tracer, FSDPParam):
    keep_padding(FSDPParam)
    real = FSDPParam.__init__

    def init(self, *args, **kwargs):
        real(self, *args, **kwargs)
        placement = getattr(self, "fsdp_placement", None)
        size = getattr(self, "_orig_size", None)
        ranks = getattr(self.mesh_info, "shard_mesh_size", 1)
        if size and size[getattr(placement, "dim", 0)] % ranks:
            tracer.file.fact("ranks_differ", "shards of FSDP")

    FSDPParam.__init__ = init


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
