

# ---- a GPU for inductor -----------------------------------------------------------------------------------------------------

def pretend_device(tracer):
    torch = tracer.torch
    import types
    import torch._dynamo.device_interface as device_interface

    # dynamo keeps rules by function: none may stand for two names.
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.cuda") or name in ("torch._C", "torch.accelerator", "torch.backends.cuda", "torch.backends.cudnn"):
            for key, value in list(vars(module).items()):
                if isinstance(value, types.FunctionType) and value.__globals__ is globals():
                    setattr(module, key, types.FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, value.__closure__))

    torch.cuda._exchange_device = torch.cuda._maybe_exchange_device = lambda *args: 0
    interface = device_interface.CudaInterface
    for name in dir(interface):
        value = getattr(torch.cuda, name, None)
        if not name.startswith("__") and name != "Worker" and callable(value):
            setattr(interface, name, value if isinstance(value, type) else staticmethod(value))
    for name, value in (("get_raw_stream", 0), ("exchange_device", 0), ("maybe_exchange_device", 0)):
        setattr(interface, name, staticmethod(lambda *args, _value=value: _value))


def pretend_triton(compiler):
    tracer, torch = compiler.tracer, compiler.torch
    import torch.utils._triton as has
    import torch._inductor.async_compile as async_compile
    import triton
    from triton.backends.compiler import GPUTarget

    triton.runtime.driver.set_active(Driver(tracer, GPUTarget("cuda", tracer.capability[0] * 10 + tracer.capability[1], 32)))
    if hasattr(has.has_triton, "cache_clear"):
        has.has_triton.cache_clear()
    import torch._inductor.runtime.triton_helpers as helpers
    helpers.set_driver_to_gpu = lambda: None
    make = async_compile.AsyncCompile
    make.triton = lambda self, name, source, *args, **kwargs: Kernel(compiler, name, source)
    make.multi_kernel = make.size_hint_multi_kernel = lambda self, *args, **kwargs: Kernel(compiler, "multi_kernel", "")

    # What a graph for the GPU does on the CPU is not run: its results stay zeros. One for the CPU alone runs as it is.
    def on_cpu(self, *args, **kwargs):
        from torch._inductor.virtualized import V
        if set(getattr(V.graph, "device_types", ())) <= {"cpu"}:
            raise RuntimeError("it runs on the CPU")
        tracer.file.note("data_dependent", "what a compiled function computes on the CPU beside the GPU was not computed; zeros were given", tracer.source())
        return lambda *values: None

    make.cpp = make.cpp_pybinding = on_cpu
    make.wait = lambda self, scope: None
    make.warm_pool = classmethod(lambda cls: None)


class Driver:
    """What inductor asks of triton's driver."""

    def __init__(self, tracer, target):
        self.tracer, self.target, self.utils = tracer, target, self

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_active_torch_device(self):
        return self.tracer.torch.device("cuda", 0)

    def get_device_interface(self):
        return self.tracer.torch.cuda

    def get_device_properties(self, device=0):
        card = self.tracer.torch.cuda.get_device_properties(0)
        return {"max_shared_mem": card.shared_memory_per_block_optin, "max_num_regs": card.regs_per_multiprocessor, "warpSize": card.warp_size,
                "multiprocessor_count": card.multi_processor_count, "sm_clock_rate": 1980000, "mem_clock_rate": 2619000, "mem_bus_width": 5120}


# Where something on `cuda` is computed while the graph is taken apart, as constants are, that is done on the CPU.
def pretend_constants(compiler):
    torch = compiler.torch
    import contextlib
    import torch.fx.experimental.proxy_tensor as proxy_tensor
    import torch._inductor.fx_passes.joint_graph as joint_graph
    import torch.utils._pytree as pytree
    from torch.utils._python_dispatch import TorchDispatchMode

    class OnCpu(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            here = lambda value: torch.device("cpu") if isinstance(value, torch.device) else value
            args, kwargs = pytree.tree_map(here, (args, kwargs or {}))
            return func(*args, **kwargs)

    def on_cpu(function):
        def run(*args, **kwargs):
            with OnCpu():
                return function(*args, **kwargs)

        return run

    folder = joint_graph.UniformValueConstantFolder
    folder.__init__, folder.run = on_cpu(folder.__init__), on_cpu(folder.run)
    for name in ("unset_fake_temporarily", "maybe_disable_fake_tensor_mode"):
        real = getattr(proxy_tensor, name, None)
        if real is None:
            continue

        @contextlib.contextmanager
        def without(_real=real):
            with _real() as before, OnCpu():
                yield before

        setattr(proxy_tensor, name, without)


# The fake kernel of a convolution takes the format of the backend that torch would choose without a GPU.
def pretend_formats(tracer):
    torch = tracer.torch
    real = torch._C._conv_determine_backend_memory_format
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}

    def chosen(x, w, backend):
        if x.device.type not in ("cuda", "meta") or x.dtype == torch.float64 or x.dim() not in formats:
            return real(x, w, backend)
        last = formats[x.dim()]
        if any(t.is_contiguous(memory_format=last) and not t.is_contiguous() for t in (x, w)):
            return last
        return torch.contiguous_format

    torch._C._conv_determine_backend_memory_format = chosen


# Products whose rows are not aligned are padded where that is faster: inductor tries both on the GPU. Here each is run for what
# it allocates, and its time reckoned. The rates for half precision are such that the products of a GPT-2 (50,257 words) are padded
# as torch 2.11 padded them on an H100; those in fp32 it left as they were.
def pretend_benchmarks(compiler):
    tracer, torch = compiler.tracer, compiler.torch
    import torch._inductor.fx_passes.pad_mm as pad_mm
    import torch.utils._pytree as pytree
    from torch.utils._python_dispatch import TorchDispatchMode

    class Clock(TorchDispatchMode):
        seconds = 0.0
        SINGLE, HALF, BYTES = 50e12, 600e12, 2.5e12  # a second
        ODD_SUMS, ODD_ROWS = {1: 200e12, 2: 300e12, 4: 450e12}, {1: 350e12, 2: 400e12, 4: 500e12}

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            tensors = [value for value in pytree.tree_leaves((args, out)) if isinstance(value, torch.Tensor)]
            if func._schema.name in MATMULS:
                a, b = [value for value in args if isinstance(value, torch.Tensor)][-2:]
                self.seconds += 2 * out.numel() * a.shape[-1] / (self.rate(a, b, out) if a.element_size() == 2 else self.SINGLE)
            elif func.namespace != "prim" and not any(value.alias_info is not None and not value.alias_info.is_write for value in func._schema.returns):
                self.seconds += sum(t.numel() * t.element_size() for t in tensors) / self.BYTES
            return out

        # By the greatest power of two that the rows are aligned to; where they are those that are summed over, it matters more.
        def rate(self, a, b, out):
            rate = self.HALF
            for tensor, summed in ((a, -1), (b, -2), (out, None)):
                for dimension in (-1, -2):
                    step = tensor.stride(dimension)
                    if step != 1:
                        odd = self.ODD_SUMS if summed is not None and tensor.stride(summed) == 1 else self.ODD_ROWS
                        rate = min(rate, odd.get(step & -step, rate))
            return rate

    # It clears the cache of the GPU in between.
    def milliseconds(function):
        with compiler.on():
            function()
            cache = torch.empty(torch.cuda.get_device_properties(0).L2_cache_size // 4, dtype=torch.int, device="cuda")
            with Clock() as clock:
                function()
            del cache
        return clock.seconds * 1000

    compiler.milliseconds = milliseconds
    pad_mm.no_dispatch = compiler.on
    try:
        import torch._inductor.runtime.benchmarking as benchmarking
        for name in ("InductorBenchmarker", "TritonBenchmarker"):
            if hasattr(benchmarking, name):
                getattr(benchmarking, name).benchmark_gpu = lambda self, function, *args, **kwargs: milliseconds(function)
    except ImportError:
        pass
    if hasattr(pad_mm, "get_do_bench"):
        pad_mm.get_do_bench = lambda: lambda function, *args, **kwargs: milliseconds(function)
