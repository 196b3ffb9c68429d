# SPDX-License-Identifier: Apache-2.0
"""What inductor asks."""

import sys

from .benchmarks import pretend_benchmarks
from .dynamo import follow_dynamo
from .generated_code import Kernel, follow_generated
from ..cuda.triton_kernels import Driver


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
            if (
                isinstance(held, type)
                and held is not tracer.FakeTensor
                and issubclass(held, tracer.FakeTensor)
            ):
                module.FakeTensor = tracer.FakeTensor
    for module, wanted in (
        (
            config,
            {
                "compile_threads": 1,
                "fx_graph_cache": False,
                "force_disable_caches": True,
                "worker_start_method": "fork",
            },
        ),
        (
            functorch_config,
            {"enable_autograd_cache": False, "graphsafe_rng_functionalization": False},
        ),
    ):
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


def of_the_tracer(function):
    return str(function.__globals__.get("__name__")).startswith("cufit_tracer.")


def pretend_device(tracer):
    torch = tracer.torch
    import types
    import torch._dynamo.device_interface as device_interface

    # dynamo keeps rules by function: none may stand for two names.
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.cuda") or name in (
            "torch._C",
            "torch.accelerator",
            "torch.backends.cuda",
            "torch.backends.cudnn",
        ):
            for key, value in list(vars(module).items()):
                if isinstance(value, types.FunctionType) and of_the_tracer(value):
                    setattr(
                        module,
                        key,
                        types.FunctionType(
                            value.__code__,
                            value.__globals__,
                            value.__name__,
                            value.__defaults__,
                            value.__closure__,
                        ),
                    )

    interface = device_interface.CudaInterface
    for name in dir(interface):
        value = getattr(torch.cuda, name, None)
        if not name.startswith("__") and name != "Worker" and callable(value):
            setattr(interface, name, value if isinstance(value, type) else staticmethod(value))
    for name, value in (
        ("get_raw_stream", 0),
        ("exchange_device", 0),
        ("maybe_exchange_device", 0),
    ):
        setattr(interface, name, staticmethod(lambda *args, _value=value: _value))


def pretend_triton(compiler):
    tracer = compiler.tracer
    import torch.utils._triton as has
    import torch._inductor.async_compile as async_compile
    import triton
    from triton.backends.compiler import GPUTarget

    triton.runtime.driver.set_active(
        Driver(tracer, GPUTarget("cuda", tracer.capability[0] * 10 + tracer.capability[1], 32))
    )
    if hasattr(has.has_triton, "cache_clear"):
        has.has_triton.cache_clear()
    import torch._inductor.runtime.triton_helpers as helpers

    helpers.set_driver_to_gpu = lambda: None
    make = async_compile.AsyncCompile
    make.triton = lambda self, name, source, *args, **kwargs: Kernel(compiler, name, source)
    make.multi_kernel = make.size_hint_multi_kernel = lambda self, *args, **kwargs: Kernel(
        compiler, "multi_kernel", ""
    )

    # What a graph for the GPU does on the CPU is not run: its results stay zeros. One for the CPU
    # alone runs as it is.
    def on_cpu(self, *args, **kwargs):
        from torch._inductor.virtualized import V

        if set(getattr(V.graph, "device_types", ())) <= {"cpu"}:
            raise RuntimeError("it runs on the CPU")
        said = "what a compiled function computes on the CPU beside the GPU was not computed; "
        tracer.file.note("data_dependent", said + "zeros were given", tracer.source())
        return lambda *values: None

    make.cpp = make.cpp_pybinding = on_cpu
    make.wait = lambda self, scope: None
    make.warm_pool = classmethod(lambda cls: None)


# Where something on `cuda` is computed while the graph is taken apart, as constants are, that is
# done on the CPU.
def pretend_constants(compiler):
    torch = compiler.torch
    import contextlib
    import torch.fx.experimental.proxy_tensor as proxy_tensor
    import torch._inductor.fx_passes.joint_graph as joint_graph
    import torch.utils._pytree as pytree
    from torch.utils._python_dispatch import TorchDispatchMode

    def here(value):
        return torch.device("cpu") if isinstance(value, torch.device) else value

    class OnCpu(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
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


# The fake kernel of a convolution takes the format of the backend that torch would choose without a
# GPU.
def pretend_formats(tracer):
    torch = tracer.torch
    real = torch._C._conv_determine_backend_memory_format
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}

    def chosen(x, w, backend):
        if (
            x.device.type not in ("cuda", "meta")
            or x.dtype == torch.float64
            or x.dim() not in formats
        ):
            return real(x, w, backend)
        last = formats[x.dim()]
        if any(t.is_contiguous(memory_format=last) and not t.is_contiguous() for t in (x, w)):
            return last
        return torch.contiguous_format

    torch._C._conv_determine_backend_memory_format = chosen
