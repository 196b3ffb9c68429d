# ---- torch.cuda without a GPU -----------------------------------------------------------------------------------------------

# The autograd engine and the operators ask a device guard which GPU is current. Builds with CUDA have one, and torch 2.6 and
# later put another in its place that asks no driver where there is no GPU; builds for the CPU have none, so that one which
# counts no devices is registered first (no_accelerator.c).
def pretend_guard(torch):
    import ctypes

    CUDA = 1
    shim = os.path.join(os.path.dirname(os.path.abspath(__file__)), "no_accelerator.so")
    registry = (ctypes.c_void_p * 2).in_dll(ctypes.CDLL(torch._C.__file__), "_ZN3c104impl26device_guard_impl_registryE")
    own = hasattr(torch._C, "_ensureCUDADeviceGuardSet")
    if not own or not registry[CUDA]:
        name = "cufit_guard_never" if own else "cufit_guard_always"
        registry[CUDA] = ctypes.addressof(ctypes.c_void_p.in_dll(ctypes.CDLL(shim), name))
    if own:
        torch._C._ensureCUDADeviceGuardSet()


# What a build for the CPU says of itself, and the three operators that only builds with CUDA have a kernel for: without it they
# are taken apart into others, and so into other allocations.
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
    torch = tracer.torch
    import json
    pretend_cuda_build(tracer)
    cuda = torch.cuda
    nothing = lambda *args, **kwargs: None

    def empty_cache(*args, **kwargs):
        tracer.file.call(tracer.file.site("empty_cache", "", tracer.source(), tracer.phase), [])

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
            Properties.multi_processor_count = card["multiProcessorCount"]
            Properties.max_threads_per_multi_processor = card["maxThreadsPerSM"]
            Properties.shared_memory_per_block_optin = card["maxSharedMemoryPerBlockOptin"]
            Properties.shared_memory_per_multiprocessor = card["maxSharedMemoryPerBlockOptin"] + card["reservedSharedMemoryPerBlock"]
            Properties.L2_cache_size = card["l2CacheSize"]

    # A data loader that copies ahead does so on a stream of its own, whose blocks no other stream takes. PyTorch has 32 that go
    # round; here it is 15. What backward makes is taken for the stream's on which backward was called.
    import itertools
    made, current = itertools.count(), []

    class Stream:
        def __init__(self, *args, **kwargs):
            number = 0 if isinstance(self, Event) else next(made)
            self.device = torch.device("cuda", 0)
            self.stream_id = self.cuda_stream = (number - 1) % 15 + 1 if number else 0
            self.device_index = 0
            self.device_type = 1

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return lambda *args, **kwargs: True if name == "query" else None

        def record_event(self, event=None):
            return event or Event()

        def __enter__(self):
            current.append(self)
            tracer.file.stream = self.stream_id
            return self

        def __exit__(self, *args):
            current.pop()
            tracer.file.stream = current[-1].stream_id

    class Event(Stream):
        def __init__(self, *args, **kwargs):
            pass

        def elapsed_time(self, other):
            return 1.0

    stream = Stream()
    current.append(stream)

    class OneStream:
        def __init__(self, stream=None):
            self.stream = stream if isinstance(stream, Stream) else current[-1]

        def __enter__(self):
            return self.stream.__enter__()

        def __exit__(self, *args):
            self.stream.__exit__()

    def set_stream(stream=None):
        if isinstance(stream, Stream):
            current[-1] = stream
            tracer.file.stream = stream.stream_id

    # What a program takes out of a tensor without values: zeros of its shape, and a note.
    def values(tensor):
        value = tracer.shadows.get(tensor)
        if value is None:
            tracer.file.note("data_dependent", "values of a %s tensor read; zeros were given" % str(tensor.dtype)[6:], tracer.source())
            value = torch.zeros(tuple(tensor.shape), dtype=tensor.dtype)
            tracer.made_up = True
        return value

    for name in ("numpy", "tolist", "__array__"):
        def reader(self, *args, _real=getattr(torch.Tensor, name), **kwargs):
            return _real(values(self) if isinstance(self, tracer.FakeTensor) else self, *args, **kwargs)
        setattr(torch.Tensor, name, reader)

    # One of `cuda` draws on the CPU what small tensors need; the others have no contents.
    class Generator(torch.Generator):
        def __new__(cls, device="cpu"):
            made = super().__new__(cls, device="cpu" if torch.device(device).type == "cuda" else device)
            made.wanted = torch.device(device)
            return made

        def __init__(self, device="cpu"):
            pass

        @property
        def device(self):
            return self.wanted

        def set_state(self, state):  # one that came over from another process has no contents
            return self if isinstance(state, tracer.FakeTensor) else super().set_state(state)

    torch.Generator = Generator
    real_load = torch.load

    def load(file, map_location=None, *args, **kwargs):
        if map_location is not None and "cuda" in str(map_location) or map_location is None:
            map_location = "cpu"
        return real_load(file, map_location, *args, **kwargs)

    torch.load = load
    if hasattr(torch, "accelerator"):
        for name, value in {"is_available": lambda: True, "device_count": lambda: 1, "current_accelerator": lambda *a, **k: torch.device("cuda"),
                            "current_device_index": lambda: 0, "current_device_idx": lambda: 0, "set_device_index": nothing,
                            "set_device_idx": nothing, "current_stream": lambda *a, **k: current[-1], "set_stream": set_stream, "synchronize": nothing, "empty_cache": empty_cache, "memory_allocated": lambda *a, **k: tracer.allocated,
                            "max_memory_allocated": lambda *a, **k: tracer.peak, "reset_peak_memory_stats": nothing,
                            "memory_reserved": lambda *a, **k: tracer.peak, "max_memory_reserved": lambda *a, **k: tracer.peak}.items():
            if hasattr(torch.accelerator, name):
                setattr(torch.accelerator, name, value)
    for name in ("_record_memory_history", "_dump_snapshot", "_set_allocator_settings"):
        if hasattr(cuda.memory, name):
            setattr(cuda.memory, name, nothing)
    state = lambda *args, **kwargs: torch.zeros(16, dtype=torch.uint8)

    def stats(*args, **kwargs):
        import collections

        out = collections.defaultdict(int)  # some count retries and segments
        for name in ("allocated", "active", "reserved", "requested"):
            out.update({name + "_bytes.all.current": tracer.allocated, name + "_bytes.all.peak": tracer.peak})
        return out

    for name, value in {
        "is_available": lambda: True, "device_count": launched, "current_device": lambda: 0, "is_initialized": lambda: True,
        "_lazy_init": nothing, "init": nothing, "set_device": nothing, "synchronize": nothing, "ipc_collect": nothing,
        "get_device_name": lambda *a, **k: tracer.gpu_name, "get_device_capability": lambda *a, **k: tracer.capability,
        "get_device_properties": lambda *a, **k: Properties(), "get_arch_list": lambda: ["sm_%d%d" % tracer.capability],
        "is_bf16_supported": lambda *a, **k: tracer.capability >= (8, 0), "is_tf32_supported": lambda *a, **k: tracer.capability >= (8, 0),
        "mem_get_info": lambda *a, **k: (tracer.total - tracer.allocated, tracer.total),
        "memory_allocated": lambda *a, **k: tracer.allocated, "max_memory_allocated": lambda *a, **k: tracer.peak,
        "memory_reserved": lambda *a, **k: tracer.peak, "max_memory_reserved": lambda *a, **k: tracer.peak,
        "memory_cached": lambda *a, **k: tracer.peak, "memory_stats": stats, "memory_summary": lambda *a, **k: "",
        "empty_cache": empty_cache, "reset_peak_memory_stats": nothing, "reset_max_memory_allocated": nothing,
        "set_per_process_memory_fraction": nothing, "utilization": lambda *a, **k: 0,
        "manual_seed": nothing, "manual_seed_all": nothing, "seed": nothing, "seed_all": nothing, "initial_seed": lambda: 0,
        "get_rng_state": state, "set_rng_state": nothing, "get_rng_state_all": lambda: [state()], "set_rng_state_all": nothing,
        "Stream": Stream, "Event": Event, "current_stream": lambda *a, **k: current[-1], "default_stream": lambda *a, **k: stream,
        "stream": OneStream, "set_stream": set_stream, "can_device_access_peer": lambda *a, **k: False, "current_blas_handle": lambda: 0,
    }.items():
        for module in (cuda, cuda.memory if hasattr(cuda.memory, name) else cuda, cuda.random if hasattr(cuda.random, name) else cuda):
            setattr(module, name, value)
    cuda.is_current_stream_capturing = cuda.graphs.is_current_stream_capturing = lambda: False
    torch._C._cuda_getDeviceCount = lambda: 1
    torch._C._cuda_isInBadFork = lambda: False
    torch._C._cuda_getDevice = lambda: 0
    torch._C._cuda_setDevice = nothing
    torch._C._cuda_exchangeDevice = lambda *a: 0
    torch._C._cuda_maybeExchangeDevice = lambda *a: 0
    torch.Tensor.pin_memory = lambda self, *a, **k: self
    torch.Tensor.share_memory_ = lambda self, _real=torch.Tensor.share_memory_: self if isinstance(self, tracer.FakeTensor) else _real(self)
    real_format = torch.Tensor.__format__
    torch.Tensor.__format__ = lambda self, form: (self.item().__format__(form) if isinstance(self, tracer.FakeTensor) and self.dim() == 0
                                                  else real_format(self, form))
    torch.Tensor.record_stream = nothing
    try:
        import torch.cuda.amp.common as common
        common.amp_definitely_not_available = lambda: False
    except ImportError:
        pass
    # A build for the CPU has none: the one that the wheels with CUDA of that time have.
    cudnn = torch.backends.cudnn
    try:
        tracer.cudnn_version = cudnn.version()
    except RuntimeError:
        tracer.cudnn_version = None
    if not tracer.cudnn_version:
        tracer.cudnn_version = 91900 if tracer.version >= (2, 11) else 91002
        cudnn.version = lambda: tracer.cudnn_version
    cudnn.is_available = lambda: True
