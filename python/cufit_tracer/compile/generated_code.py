# SPDX-License-Identifier: Apache-2.0
"""The code that inductor writes."""

import sys

from ..plans.work import tell_moved


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
            tensors = [
                value
                for value in args
                if isinstance(value, tracer.FakeTensor) and value.fake_device.type == "cuda"
            ]
            tell_moved(tracer, "triton", sum(t.numel() * t.element_size() for t in tensors), 1)

    # Where inductor has several forms of a kernel, each is timed when it is first called, on copies
    # of what it would write. (A form more, which it tries where a reduction takes many registers,
    # is known only to who compiles it.)
    def choose(self, args):
        import torch._inductor.codecache as codecache

        compiler = self.compiler
        tracer, torch = compiler.tracer, compiler.torch
        with compiler.off():
            tuner = getattr(codecache.PyCodeCache.load(self.source), self.name)
        if len(tuner.configs or ()) < 2:
            return
        written = [
            value
            for name, value in zip(tuner.fn.arg_names, args)
            if name in tuner.mutated_arg_names and isinstance(value, tracer.FakeTensor)
        ]
        room = (
            tracer.peak - tracer.allocated if getattr(tuner, "optimize_mem", False) else sys.maxsize
        )
        sizes = []
        for value in written:
            size = (
                sum((count - 1) * step for count, step in zip(value.shape, value.stride())) + 1
            ) * value.element_size()
            if size <= room:  # else it is copied to the CPU
                room -= size
                sizes.append(size)
        # Once for all forms: the next asks for the same.
        compiler.milliseconds(
            lambda: [torch.empty(size, dtype=torch.uint8, device="cuda") for size in sizes]
        )

    def __getitem__(self, grid):
        return self.run

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def follow_generated(compiler):
    torch = compiler.torch
    import torch._inductor.codecache as codecache

    def nothing(*args, **kwargs):
        return None

    def empty(size, stride, dtype):
        return torch.empty_strided(size, stride, dtype=dtype, device="cuda")

    def empty_cpu(size, stride, dtype):
        out = torch.empty_strided(size, stride, dtype=dtype)
        return out if isinstance(out, compiler.tracer.FakeTensor) else out.zero_()

    names = {
        "empty_strided_cuda": empty,
        "empty_strided_cpu": empty_cpu,
        "empty_strided_cpu_pinned": empty_cpu,
        "assert_size_stride": nothing,
        "assert_alignment": nothing,
        "get_raw_stream": lambda device: 0,
        "reinterpret_tensor": lambda tensor, size, stride, offset=0: torch.as_strided(
            tensor, size, stride, tensor.storage_offset() + offset
        ),
    }
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
