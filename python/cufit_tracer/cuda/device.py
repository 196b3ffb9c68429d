# SPDX-License-Identifier: Apache-2.0
"""torch.cuda without a GPU."""

import collections
import types

from ..program.launchers import devices
from .current_device import CurrentDevice
from .readers import patch_generators, patch_loading, patch_readers
from .streams import patch_streams


def nothing(*args, **kwargs):
    return None


# dynamo has a rule for each function: two names of torch that have two rules are two functions.
def apart(function):
    return lambda *args, **kwargs: function(*args, **kwargs)


# What a build for the CPU says of itself, and the three operators that only builds with CUDA have a
# kernel for: without it they are taken apart into others, and so into other allocations.
def pretend_cuda_build(tracer):
    torch = tracer.torch
    if torch.version.cuda or torch.version.hip:
        return
    torch.version.cuda = "13.0" if tracer.version >= (2, 11) else "12.8"
    torch._C._has_cuda = torch._C._has_cudnn = True
    torch.backends.cuda.is_built = lambda: True

    def never(*args, **kwargs):
        raise RuntimeError("this torch is built without CUDA")

    tracer.kernels = torch.library.Library("aten", "IMPL", "CUDA")  # they go with it
    for name in ("silu_backward", "mish_backward", "_fused_rms_norm"):
        if hasattr(torch.ops.aten, name):
            tracer.kernels.impl(name, never)


def pretend_cuda(tracer):
    pretend_cuda_build(tracer)
    tracer.device = CurrentDevice(tracer.torch)
    streams = patch_streams(tracer)
    patch_readers(tracer)
    patch_generators(tracer)
    patch_loading(tracer)
    patch_accelerator(tracer, streams)
    memory = tracer.torch.cuda.memory
    for name in ("_record_memory_history", "_dump_snapshot", "_set_allocator_settings"):
        if hasattr(memory, name):
            setattr(memory, name, nothing)
    patch_functions(tracer, streams)
    patch_driver(tracer.torch, tracer.device)
    patch_tensors(tracer)
    patch_cudnn(tracer)


def properties_of(tracer):
    import json

    class Properties:
        name = tracer.gpu_name
        major, minor = tracer.capability
        total_memory = tracer.total
        multi_processor_count = 132
        warp_size = 32
        max_threads_per_block = 1024
        shared_memory_per_block = 49152
        max_threads_per_multi_processor = 2048
        regs_per_multiprocessor = 65536
        shared_memory_per_block_optin = 232448
        shared_memory_per_multiprocessor = 233472
        L2_cache_size = 62914560
        is_integrated = is_multi_gpu_board = 0
        uuid = "GPU-00000000-0000-0000-0000-000000000000"
        gcnArchName = ""

    # Of a card of the capability that is pretended, by CUDA's names.
    for capability, card in json.loads(tracer.wanted["DEVICE"] or "[]"):
        if capability == 10 * tracer.capability[0] + tracer.capability[1]:
            most = card["maxSharedMemoryPerBlockOptin"]
            Properties.multi_processor_count = card["multiProcessorCount"]
            Properties.max_threads_per_multi_processor = card["maxThreadsPerSM"]
            Properties.shared_memory_per_block_optin = most
            reserved = card["reservedSharedMemoryPerBlock"]
            Properties.shared_memory_per_multiprocessor = most + reserved
            Properties.L2_cache_size = card["l2CacheSize"]
    return Properties


def emptying(tracer):
    def empty_cache(*args, **kwargs):
        site = tracer.file.site("empty_cache", "", tracer.source(), tracer.phase)
        tracer.file.call(site, [])

    return empty_cache


def patch_accelerator(tracer, streams):
    accelerator = getattr(tracer.torch, "accelerator", None)
    if accelerator is None:
        return
    device = tracer.torch.device
    for name, value in {
        "is_available": lambda: True,
        "device_count": devices,
        "current_accelerator": lambda *a, **k: device("cuda"),
        "current_device_index": tracer.device.get,
        "current_device_idx": tracer.device.get,
        "set_device_index": tracer.device.set,
        "set_device_idx": tracer.device.set,
        "current_stream": streams.current_stream,
        "set_stream": streams.set_stream,
        "synchronize": lambda *a, **k: tracer.waits.done(),
        "empty_cache": emptying(tracer),
        "memory_allocated": lambda *a, **k: tracer.allocated,
        "max_memory_allocated": lambda *a, **k: tracer.peak,
        "reset_peak_memory_stats": nothing,
        "memory_reserved": lambda *a, **k: tracer.peak,
        "max_memory_reserved": lambda *a, **k: tracer.peak,
    }.items():
        if hasattr(accelerator, name):
            setattr(accelerator, name, value)


def patch_functions(tracer, streams):
    cuda = tracer.torch.cuda
    functions = {**of_device(tracer), **of_memory(tracer), **of_generators(tracer.torch)}
    functions.update(streams.functions())
    for name, value in functions.items():
        if value is nothing or isinstance(value, types.MethodType):
            value = apart(value)
        memory = cuda.memory if hasattr(cuda.memory, name) else cuda
        random = cuda.random if hasattr(cuda.random, name) else cuda
        for module in (cuda, memory, random):
            setattr(module, name, value)


def of_device(tracer):
    Properties = properties_of(tracer)
    return {
        "is_available": lambda: True,
        "device_count": devices,
        "current_device": tracer.device.get,
        "is_initialized": lambda: True,
        "_lazy_init": nothing,
        "init": nothing,
        "set_device": tracer.device.set,
        "synchronize": lambda *a, **k: tracer.waits.done(),
        "ipc_collect": nothing,
        "get_device_name": lambda *a, **k: tracer.gpu_name,
        "get_device_capability": lambda *a, **k: tracer.capability,
        "get_device_properties": lambda *a, **k: Properties(),
        "get_arch_list": lambda: ["sm_%d%d" % tracer.capability],
        "is_bf16_supported": lambda *a, **k: tracer.capability >= (8, 0),
        "is_tf32_supported": lambda *a, **k: tracer.capability >= (8, 0),
        "utilization": lambda *a, **k: 0,
        "can_device_access_peer": lambda *a, **k: False,
        "current_blas_handle": lambda: 0,
    }


def of_memory(tracer):
    def stats(*args, **kwargs):
        out = collections.defaultdict(int)  # some count retries and segments
        for name in ("allocated", "active", "reserved", "requested"):
            out[name + "_bytes.all.current"] = tracer.allocated
            out[name + "_bytes.all.peak"] = tracer.peak
        return out

    return {
        "mem_get_info": lambda *a, **k: (tracer.total - tracer.allocated, tracer.total),
        "memory_allocated": lambda *a, **k: tracer.allocated,
        "max_memory_allocated": lambda *a, **k: tracer.peak,
        "memory_reserved": lambda *a, **k: tracer.peak,
        "max_memory_reserved": lambda *a, **k: tracer.peak,
        "memory_cached": lambda *a, **k: tracer.peak,
        "memory_stats": stats,
        "memory_summary": lambda *a, **k: "",
        "empty_cache": emptying(tracer),
        "reset_peak_memory_stats": nothing,
        "reset_max_memory_allocated": nothing,
        "set_per_process_memory_fraction": nothing,
    }


def of_generators(torch):
    def state(*args, **kwargs):
        return torch.zeros(16, dtype=torch.uint8)

    return {
        "manual_seed": nothing,
        "manual_seed_all": nothing,
        "seed": nothing,
        "seed_all": nothing,
        "initial_seed": lambda: 0,
        "get_rng_state": state,
        "set_rng_state": nothing,
        "get_rng_state_all": lambda: [state()],
        "set_rng_state_all": nothing,
    }


def patch_driver(torch, current):
    torch.cuda.is_current_stream_capturing = lambda: False
    torch.cuda.graphs.is_current_stream_capturing = torch.cuda.is_current_stream_capturing
    if hasattr(torch._C, "_get_accelerator"):
        torch._C._get_accelerator = lambda *a: torch.device("cuda")
    torch._C._cuda_getDeviceCount = devices
    torch._C._cuda_isInBadFork = lambda: False
    torch._C._cuda_getDevice = current.get
    torch._C._cuda_setDevice = current.set
    torch._C._cuda_exchangeDevice = torch._C._cuda_maybeExchangeDevice = current.exchange
    # Bound when torch was imported: `with torch.cuda.device(0):`.
    torch.cuda._exchange_device = torch.cuda._maybe_exchange_device = current.exchange


def patch_tensors(tracer):
    torch = tracer.torch
    Tensor = torch.Tensor
    real_share, real_format = Tensor.share_memory_, Tensor.__format__

    def share_memory_(self):
        return self if isinstance(self, tracer.FakeTensor) else real_share(self)

    def format_of(self, form):
        if isinstance(self, tracer.FakeTensor) and self.dim() == 0:
            return self.item().__format__(form)
        return real_format(self, form)

    Tensor.pin_memory = lambda self, *a, **k: self
    Tensor.share_memory_, Tensor.__format__ = share_memory_, format_of
    Tensor.record_stream = lambda self, stream: tracer.waits.record(self, stream)
    try:
        import torch.cuda.amp.common as common

        common.amp_definitely_not_available = lambda: False
    except ImportError:
        pass


# A build for the CPU has none: the one that the wheels with CUDA of that time have.
def patch_cudnn(tracer):
    cudnn = tracer.torch.backends.cudnn
    try:
        tracer.cudnn_version = cudnn.version()
    except RuntimeError:
        tracer.cudnn_version = None
    if not tracer.cudnn_version:
        tracer.cudnn_version = 91900 if tracer.version >= (2, 11) else 91002
        cudnn.version = lambda: tracer.cudnn_version
    cudnn.is_available = lambda: True
