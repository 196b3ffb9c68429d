# SPDX-License-Identifier: Apache-2.0
"""The trials by which inductor chooses. Products whose rows are not aligned are padded where that
is faster: inductor tries both on the GPU. Here each is run for what it allocates, and its time
reckoned."""

from ..ops.kernel_calls import MATMULS


# The rates for half precision are such that the products of a GPT-2 (50,257 words) are padded as
# torch 2.11 padded them on an H100; those in fp32 it left as they were.
def clock_class(torch):
    import torch.utils._pytree as pytree
    from torch.utils._python_dispatch import TorchDispatchMode

    class Clock(TorchDispatchMode):
        seconds = 0.0
        SINGLE, HALF, BYTES = 50e12, 600e12, 2.5e12  # a second
        ODD_SUMS, ODD_ROWS = {1: 200e12, 2: 300e12, 4: 450e12}, {1: 350e12, 2: 400e12, 4: 500e12}

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            leaves = pytree.tree_leaves((args, out))
            tensors = [value for value in leaves if isinstance(value, torch.Tensor)]
            if func._schema.name in MATMULS:
                a, b = [value for value in args if isinstance(value, torch.Tensor)][-2:]
                rate = self.rate(a, b, out) if a.element_size() == 2 else self.SINGLE
                self.seconds += 2 * out.numel() * a.shape[-1] / rate
            elif func.namespace != "prim" and not is_view(func):
                self.seconds += sum(t.numel() * t.element_size() for t in tensors) / self.BYTES
            return out

        # By the greatest power of two that the rows are aligned to; where they are those that are
        # summed over, it matters more.
        def rate(self, a, b, out):
            rate = self.HALF
            for tensor, summed in ((a, -1), (b, -2), (out, None)):
                inside = summed is not None and tensor.stride(summed) == 1
                odd = self.ODD_SUMS if inside else self.ODD_ROWS
                for dimension in (-1, -2):
                    step = tensor.stride(dimension)
                    if step != 1:
                        rate = min(rate, odd.get(step & -step, rate))
            return rate

    return Clock


def is_view(func):
    aliases = [value.alias_info for value in func._schema.returns]
    return any(alias is not None and not alias.is_write for alias in aliases)


def pretend_benchmarks(compiler):
    torch = compiler.torch
    import torch._inductor.fx_passes.pad_mm as pad_mm

    Clock = clock_class(torch)

    # It clears the cache of the GPU in between.
    def milliseconds(function):
        with compiler.on():
            function()
            size = torch.cuda.get_device_properties(0).L2_cache_size // 4
            cache = torch.empty(size, dtype=torch.int, device="cuda")
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
                benchmarker = getattr(benchmarking, name)
                benchmarker.benchmark_gpu = lambda self, function, *a, **k: milliseconds(function)
    except ImportError:
        pass
    if hasattr(pad_mm, "get_do_bench"):
        pad_mm.get_do_bench = lambda: lambda function, *args, **kwargs: milliseconds(function)
