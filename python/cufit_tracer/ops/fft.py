# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms."""

FFTS = {"aten::_fft_r2c": 0, "aten::_fft_c2r": 1, "aten::_fft_c2c": 2}


def fft(tracer, kind, args, out):
    real = out if kind == 1 else args[0]  # of the transform's whole length
    lengths = [int(real.shape[dimension]) for dimension in args[1]]
    count = 1
    for length in lengths:
        count *= length
    bits = (out if kind == 1 else args[0]).element_size() * (4 if kind == 2 else 8)
    if count:
        tracer.file.call(
            tracer.file.site("fft", "", tracer.source(), tracer.phase),
            [kind, bits, int(real.numel()) // count, *lengths],
        )


# What a transform copies before it begins: values that are no single run of transforms, and what
# goes to real ones, whose values it destroys (aten/src/ATen/native/cuda/SpectralOps.cpp).
def fft_copies(name, args):
    x = args[0]
    bytes = x.numel() * x.element_size()
    if FFTS[name] == 1:
        return [bytes]
    over = {int(dimension) % max(x.dim(), 1) for dimension in args[1]}
    rest = sorted(
        (d for d in range(x.dim()) if d not in over and x.shape[d] > 1), key=x.stride, reverse=True
    )
    together = all(x.stride(a) == x.stride(b) * x.shape[b] for a, b in zip(rest, rest[1:]))
    return [] if together else [bytes]
