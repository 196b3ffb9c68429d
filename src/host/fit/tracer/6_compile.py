

# ---- torch.compile ----------------------------------------------------------------------------------------------------------

# torch.compile itself runs, over the tensors without contents: dynamo, the partitioner that chooses what backward gets, inductor's
# fusion and code. Only its kernels are not compiled. The Python around them that inductor writes is what asks the allocator on a
# GPU; it runs here under the mode of the tracer, with kernels that do nothing. What cannot be compiled here runs as it is, with a
# note; where compiled code fails as it runs, the program starts again without torch.compile, as nothing that was told can be
# taken back.
NOT_FOLLOWED = "torch.compile is not followed; the model was traced as it runs without"


def patch_compile(tracer):
    torch = tracer.torch
    compiler = Compiler(tracer)
    real = torch.compile

    def compiled(model=None, *args, **kwargs):
        if model is None:
            return lambda function: compiled(function, *args, **kwargs)
        return compiler.compiled(real, model, args, kwargs)

    torch.compile = compiled
    torch.nn.Module.compile = lambda self, *args, **kwargs: compiler.compile_module(self, compiled, args, kwargs)


def never_fake(value):
    return False


class Compiler:
    WITHOUT = "CUFIT_FIT_WITHOUT_COMPILE"  # why not, in the environment of a program that starts again

    def __init__(self, tracer):
        self.tracer, self.torch = tracer, tracer.torch
        self.ready = False
        self.tried = set()  # sources of kernels
        self.why_not = os.environ.get(self.WITHOUT, "")
        self.folder = os.getcwd()
        self.environment = dict(os.environ)
        if self.why_not:
            self.note(self.why_not)

    def note(self, why):
        self.tracer.file.note("assumed", "%s (%s)" % (NOT_FOLLOWED, why[:300]) if why else NOT_FOLLOWED, self.tracer.source())

    # -- what the program calls

    def compiled(self, real, model, args, kwargs):
        if kwargs.get("disable"):
            return model
        if not self.prepare():
            return model
        try:
            out = real(model, *args, **self.options(kwargs))
        except Exception as error:
            self.note(said(error))
            return model
        return out if isinstance(out, self.torch.nn.Module) else self.entered(out, model)

    def compile_module(self, module, compiled, args, kwargs):
        call = compiled(module._call_impl, *args, **kwargs)
        if call != module._call_impl:
            module._compiled_call_impl = call

    # CUDA graphs and the search for the fastest kernels are left out.
    def options(self, kwargs):
        torch, mode, options = self.torch, kwargs.get("mode"), dict(kwargs.get("options") or {})
        if kwargs.get("backend", "inductor") != "inductor" or not (mode and mode != "default" or options):
            return kwargs
        if mode:
            import torch._inductor
            options = dict(torch._inductor.list_mode_options(mode, kwargs.get("dynamic")))
        left_out = [name for name in options if options[name] and ("cudagraphs" in name or "autotune" in name or "coordinate_descent" in name)]
        if left_out:
            self.tracer.file.note("assumed", "torch.compile: %s left out; what CUDA graphs keep and the search for kernels takes is not counted" %
                                  ", ".join(sorted(left_out)), self.tracer.source())
        out = {name: value for name, value in kwargs.items() if name not in ("mode", "options")}
        options = {name: value for name, value in options.items() if name not in left_out}
        return dict(out, options=options) if options else out

    # Around each call of something compiled: dynamo would look into the hooks of the tracer.
    def entered(self, function, model):
        torch, tracer = self.torch, self.tracer
        import functools
        from torch.nn.modules import module as hooks
        owner = model if isinstance(model, torch.nn.Module) else getattr(model, "__self__", None)
        tables = [vars(hooks)[name] for name in ("_global_forward_pre_hooks", "_global_forward_hooks", "_global_forward_hooks_always_called",
                                                 "_global_forward_hooks_with_kwargs", "_global_forward_pre_hooks_with_kwargs") if name in vars(hooks)]

        def inside(*args, **kwargs):
            if isinstance(owner, torch.nn.Module):
                tracer.tell_parameters(owner)
            if torch.is_grad_enabled():
                tracer.step_begins()
            library = sys.modules.get("transformers.utils.import_utils")
            if hasattr(library, "is_fake_tensor"):  # it takes other ways where somebody traces
                library.is_fake_tensor = never_fake
            kept = [dict(table) for table in tables]
            for table in tables:
                table.clear()
            try:
                return function(*args, **kwargs)
            finally:
                for table, before in zip(tables, kept):
                    table.update(before)

        try:
            return functools.update_wrapper(inside, function)
        except Exception:
            return inside

    # -- where the tracer looks on, and where not

    def listens(self):
        from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
        return any(mode is self.tracer.mode for mode in _get_current_dispatch_mode_stack())

    def on(self):
        return Listening(self, True)

    def off(self):
        return Listening(self, False)

    # -- the program again, without

    def again(self, error):
        sys.stderr.write("cufit: what torch.compile made does not run here (%s); once more without\n" % said(error))
        sys.stderr.flush()
        sys.stdout.flush()
        file = self.tracer.file
        with file.lock:
            if file.on_disk:
                file.closed = True
                file.out.close()
                os.unlink(file.path)
        os.chdir(self.folder)
        os.execve(sys.executable, [sys.executable] + sys.orig_argv[1:], dict(self.environment, **{self.WITHOUT: said(error)}))

    # Runs a part of what was compiled; it has no way back.
    def or_again(self, function):
        def run(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            except Exception as error:
                self.again(error)

        return run

    # -- once, before the first

    def prepare(self):
        if self.why_not:
            return False
        if not self.ready:
            try:
                if not hasattr(sys, "orig_argv"):
                    raise RuntimeError("Python before 3.10")
                folder = os.path.join(self.tracer.wanted["SCRATCH"] or os.path.join(OWN, "scratch"), "inductor")
                global LIBRARIES
                LIBRARIES += (folder + os.sep,)
                os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
                os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
                with self.off():
                    pretend_inductor(self)
                self.ready = True
            except Exception as error:
                self.why_not = said(error)
                self.note(self.why_not)
                return False
        return True


def said(error):
    return " ".join(("%s: %s" % (type(error).__name__, error)).split("\n")[:2])


# A piece of the program during which the tracer's mode is there or away; `compiling`: whether that is a part of torch.compile.
class Listening:
    def __init__(self, compiler, wanted):
        self.compiler, self.tracer, self.wanted = compiler, compiler.tracer, wanted

    def __enter__(self):
        tracer = self.tracer
        self.compiling, tracer.compiling = tracer.compiling, not self.wanted
        self.change = self.compiler.listens() != self.wanted
        if self.change:
            self.turn(self.wanted)

    def __exit__(self, *error):
        self.tracer.compiling = self.compiling
        if self.change:
            self.turn(not self.wanted)

    def turn(self, on):
        mode = self.tracer.mode
        mode.__enter__() if on else mode.__exit__(None, None, None)


# ---- what dynamo and inductor ask -------------------------------------------------------------------------------------------

def pretend_inductor(compiler):
    tracer, torch = compiler.tracer, compiler.torch
    torch._subclasses.FakeTensor = tracer.FakeTensor
    import torch._dynamo
    import torch._functorch.aot_autograd  # noqa: F401
    import torch._inductor.compile_fx  # noqa: F401
    import torch._inductor.config as config
    import torch._functorch.config as functorch_config

    # Those that were imported before hold what the tracer had put there.
    for name, module in list(sys.modules.items()):
        if name.startswith("torch."):
            held = getattr(module, "__dict__", {}).get("FakeTensor")
            if isinstance(held, type) and held is not tracer.FakeTensor and issubclass(held, tracer.FakeTensor):
                module.FakeTensor = tracer.FakeTensor
    for module, wanted in ((config, {"compile_threads": 1, "fx_graph_cache": False, "force_disable_caches": True, "worker_start_method": "fork"}),
                           (functorch_config, {"enable_autograd_cache": False, "force_non_lazy_backward_lowering": False})):
        for name, value in wanted.items():
            if hasattr(module, name):
                setattr(module, name, value)
    pretend_device(tracer)
    pretend_triton(compiler)
    pretend_constants(compiler)
    pretend_formats(tracer)
    pretend_benchmarks(compiler)
    follow_dynamo(compiler)
    follow_generated(compiler)


def follow_dynamo(compiler):
    tracer, torch = compiler.tracer, compiler.torch
    from torch._dynamo import convert_frame, eval_frame, guards

    real_call = convert_frame.CatchErrorsWrapper.__call__

    # A frame that is not compiled runs as it is: dynamo says that with an empty answer.
    def convert(self, frame, *args, **kwargs):
        try:
            with compiler.off():
                return real_call(self, frame, *args, **kwargs)
        except Exception as error:
            compiler.note(said(error))
            return convert_frame.ConvertFrameReturn() if hasattr(convert_frame, "ConvertFrameReturn") else None

    convert_frame.CatchErrorsWrapper.__call__ = convert
    # The guards hold what a tensor is like under the mode that is there when they are asked.
    for owner, name in ((guards.CheckFunctionManager, "__init__"), (guards, "get_guard_fail_reason_helper")):
        if hasattr(owner, name):
            setattr(owner, name, listening(compiler, getattr(owner, name)))
    # The states of a compiled optimizer are made while it is compiled.
    for optimizer in list(vars(torch.optim).values()):
        if isinstance(optimizer, type) and "_init_group" in vars(optimizer):
            optimizer._init_group = listening(compiler, optimizer._init_group)
    mode = type(tracer.mode)
    mode.__torch_dispatch__ = torch._dynamo.disable(mode.__torch_dispatch__)
    initialize = eval_frame.OptimizedModule._initialize

    def initialized(self):
        initialize(self)
        self.forward = compiler.entered(self.forward, self._orig_mod)

    eval_frame.OptimizedModule._initialize = initialized
    import warnings
    warnings.filterwarnings("ignore", message="Using `torch.compile.module.` when there are global hooks")
    warnings.filterwarnings("ignore", message="dynamo_pgo force disabled")
    warnings.filterwarnings("ignore", message="Accessing the data pointer of FakeTensor")
    # In the graph attention stands as one call, whose kernel is chosen while the graph is taken apart.
    torch._dynamo.allow_in_graph(tracer.attention)
    operator, key = torch.ops.aten.scaled_dot_product_attention.default, torch._C.DispatchKey.CompositeImplicitAutograd
    operator.py_kernels.pop(key, None)
    operator.py_impl(key)(tracer.attention)


def listening(compiler, function):
    def run(*args, **kwargs):
        if not compiler.tracer.compiling:
            return function(*args, **kwargs)
        with compiler.on():
            compiler.tracer.compiling = True
            return function(*args, **kwargs)

    return run


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
    try:
        import triton
        from triton.backends.compiler import GPUTarget

        triton.runtime.driver.set_active(Driver(tracer, GPUTarget("cuda", tracer.capability[0] * 10 + tracer.capability[1], 32)))
    except ImportError:
        for name in ("has_triton_package", "triton_key", "triton_hash_with_backend"):
            if hasattr(has, name):
                setattr(has, name, lambda: name == "has_triton_package" or "0")
    has.has_triton.cache_clear() if hasattr(has.has_triton, "cache_clear") else None
    import torch._inductor.runtime.triton_helpers as helpers
    helpers.set_driver_to_gpu = lambda: None
    make = async_compile.AsyncCompile
    make.triton = lambda self, name, source, *args, **kwargs: Kernel(compiler, name, source)
    make.multi_kernel = make.size_hint_multi_kernel = lambda self, *args, **kwargs: Kernel(compiler, "multi_kernel", "")
    # What runs on the CPU is not run: its results stay zeros.
    make.cpp = make.cpp_pybinding = lambda self, *args, **kwargs: lambda *values: None
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


class Kernel:
    """One of triton's, which does nothing."""

    def __init__(self, compiler, name, source):
        self.compiler, self.name, self.source = compiler, name, source

    def run(self, *args, **kwargs):
        tracer = self.compiler.tracer
        if self.source not in self.compiler.tried:
            self.compiler.tried.add(self.source)
            try:
                self.choose(args)
            except Exception:
                pass  # what the trials take is not told
        if tracer.counting:
            tensors = [value for value in args if isinstance(value, tracer.FakeTensor) and value.fake_device.type == "cuda"]
            tell_moved(tracer, "triton", sum(t.numel() * t.element_size() for t in tensors), 1)

    # Where inductor has several forms of a kernel, each is timed when it is first called, on copies of what it would write. (A form
    # more, which it tries where a reduction takes many registers, is known only to who compiles it.)
    def choose(self, args):
        import torch._inductor.codecache as codecache
        compiler = self.compiler
        tracer, torch = compiler.tracer, compiler.torch
        with compiler.off():
            tuner = getattr(codecache.PyCodeCache.load(self.source), self.name)
        forms = len(tuner.configs or ())
        if forms < 2:
            return
        written = [value for name, value in zip(tuner.fn.arg_names, args) if name in tuner.mutated_arg_names and isinstance(value, tracer.FakeTensor)]
        room = tracer.peak - tracer.allocated if getattr(tuner, "optimize_mem", False) else sys.maxsize
        sizes = []
        for value in written:
            size = (sum((count - 1) * step for count, step in zip(value.shape, value.stride())) + 1) * value.element_size()
            if size <= room:  # else it is copied to the CPU
                room -= size
                sizes.append(size)
        for _ in range(forms):
            compiler.milliseconds(lambda: [torch.empty(size, dtype=torch.uint8, device="cuda") for size in sizes])

    def __getitem__(self, grid):
        return self.run

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


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


# ---- what inductor writes ---------------------------------------------------------------------------------------------------

def follow_generated(compiler):
    torch = compiler.torch
    import torch._inductor.codecache as codecache

    nothing = lambda *args, **kwargs: None
    empty = lambda size, stride, dtype: torch.empty_strided(size, stride, dtype=dtype, device="cuda")

    def empty_cpu(size, stride, dtype):
        out = torch.empty_strided(size, stride, dtype=dtype)
        return out if isinstance(out, compiler.tracer.FakeTensor) else out.zero_()

    names = {"empty_strided_cuda": empty, "empty_strided_cpu": empty_cpu, "empty_strided_cpu_pinned": empty_cpu, "assert_size_stride": nothing,
             "assert_alignment": nothing, "get_raw_stream": lambda device: 0,
             "reinterpret_tensor": lambda tensor, size, stride, offset=0: torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)}
    real = codecache.PyCodeCache.load_by_key_path

    def load(*args, **kwargs):
        module = real(*args, **kwargs)
        call = getattr(module, "call", None)
        if call is not None:
            for name, value in names.items():
                if hasattr(module, name):
                    setattr(module, name, value)
            module.call = compiler.or_again(call)
        return module

    codecache.PyCodeCache.load_by_key_path = staticmethod(load)
    # Of a backward pass that is compiled as it is first run.
    import torch._inductor.compile_fx as compile_fx
    for name in ("compile_fx_inner", "_compile_fx_inner"):
        inner = getattr(compile_fx, name, None)
        if inner is not None:
            setattr(compile_fx, name, late(compiler, inner))
            break


# Compiled while dynamo is at it, an error is dynamo's to tell; later there is no way back.
def late(compiler, inner):
    import functools

    @functools.wraps(inner)
    def run(*args, **kwargs):
        if compiler.tracer.compiling:
            return inner(*args, **kwargs)
        try:
            with compiler.off():
                return inner(*args, **kwargs)
        except Exception as error:
            compiler.again(error)

    return run
