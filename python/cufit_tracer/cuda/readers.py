# SPDX-License-Identifier: Apache-2.0
"""What a program takes out of tensors without values, and generators of random numbers."""

from ..ops.even_counts import tell_even


# Zeros of its shape, and a note.
def patch_readers(tracer):
    torch = tracer.torch

    def values(tensor):
        value = tracer.shadows.get(tensor)
        if value is None:
            said = "values of a %s tensor read; zeros were given" % str(tensor.dtype)[6:]
            tracer.file.note("data_dependent", said, tracer.source())
            value = torch.zeros(tuple(tensor.shape), dtype=tensor.dtype)
            tracer.made_up = True
        tell_even(tracer, value)
        return value

    def reader(real):
        def read(self, *args, **kwargs):
            fake = isinstance(self, tracer.FakeTensor)
            return real(values(self) if fake else self, *args, **kwargs)

        return read

    for name in ("numpy", "tolist", "__array__"):
        setattr(torch.Tensor, name, reader(getattr(torch.Tensor, name)))


# One of `cuda` draws on the CPU what small tensors need; the others have no contents.
def patch_generators(tracer):
    torch = tracer.torch

    class Generator(torch.Generator):
        def __new__(cls, device="cpu"):
            on_gpu = torch.device(device).type == "cuda"
            made = super().__new__(cls, device="cpu" if on_gpu else device)
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
    torch.cuda.default_generators = (Generator("cuda"),)


# What lies in files goes to the CPU first.
def patch_loading(tracer):
    torch = tracer.torch
    real_load = torch.load

    def load(file, map_location=None, *args, **kwargs):
        if map_location is None or "cuda" in str(map_location):
            map_location = "cpu"
        return real_load(file, map_location, *args, **kwargs)

    torch.load = load
