# SPDX-License-Identifier: Apache-2.0
"""Memory that kernels take beside their results, for as long as they run.

PyTorch's own kernels ask for memory that no dispatcher sees: operands in one piece, in another
type, sums in parts, keys that are sorted. The rules below are what an H200 with torch 2.11
allocated in 5,902 samples of operators, each forward and backward (2,506 at sizes of training, the
others of torch.testing's op_db); what stays below a few KiB is left out."""

from ..tensors import largest, multiplies, size_of
from .convolution_copies import convolve, format_of, formats_of, last_first, own_kernel
from .fft import FFTS, fft_copies
from .sums_of_norms import sum_of_norm
from .temporaries_behind import TemporariesBehind, reduced


class Temporaries:
    AVERAGED = (
        "aten::mse_loss",
        "aten::smooth_l1_loss",
        "aten::binary_cross_entropy",
        "aten::soft_margin_loss",
    )
    # The first of the two factors.
    MULTIPLIED = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1}

    def __init__(self, tracer):
        self.tracer = tracer
        torch = self.torch = tracer.torch
        self.behind = TemporariesBehind(torch)
        aten = torch.ops.aten
        self.first_in_one_piece = (
            aten._cudnn_rnn.default,
            aten.native_layer_norm.default,
            aten.embedding_dense_backward.default,
        )
        self.both_in_one_piece = aten.native_layer_norm_backward.default

    # All of them at once, for as long as nothing else happens.
    def tell(self, sizes):
        if sizes:
            tracer = self.tracer
            module = tracer.modules[-1] if tracer.modules else ""
            site = tracer.file.site("temporary", module, tracer.source(), tracer.phase)
            for storage in [tracer.file.alloc(size, site) for size in sizes]:
                tracer.file.free(storage)

    def convolve(self, func, args, out, site):
        return convolve(self.tracer, func, args, out, site)

    def sum_of_norm(self, func, args, out, site):
        sum_of_norm(self.tracer, func._schema.name, args, out, site)

    # Bytes that an operator takes before its result, for as long as it runs.
    def before(self, func, args, out):
        operands, wanted = self.copied_before(func, args)
        if operands is None:
            return self.reckoned_before(func._schema.name, args, out)
        return [
            size_of(t)
            for t in operands
            if t is not None and t.numel() and not t.is_contiguous(memory_format=wanted)
        ]

    # Operands that are copied where they do not lie in the format that stands beside them.
    def copied_before(self, func, args):
        torch, name = self.torch, func._schema.name
        plain = torch.contiguous_format
        if func is torch.ops.aten.convolution.default:
            return self.of_convolution(func, args, args[:2], args[:2])
        if func is torch.ops.aten.convolution_backward.default:
            return self.of_convolution(func, args, args[:3], args[1:3])
        if func in self.first_in_one_piece or name == "aten::_fused_rms_norm":
            return args[:1], plain
        if func is self.both_in_one_piece:
            return args[:2], plain
        if name == "aten::_fused_rms_norm_backward":
            return args[1:2], plain
        if name == "aten::cudnn_batch_norm_backward":
            x = args[0]
            return args[1:2], formats_of(torch)[x.dim()] if last_first(x) else plain
        return None, None

    def of_convolution(self, func, args, operands, together):
        own = own_kernel(self.torch, func, args)
        return operands if own else (), format_of(self.torch, *together)

    def reckoned_before(self, name, args, out):
        if name in FFTS:
            return fft_copies(name, args)
        if name in self.MULTIPLIED:
            first = self.MULTIPLIED[name]
            factors = [factor for factor in args[first : first + 2] if factor.numel()]
            return [size_of(factor) for factor in factors if not multiplies(factor)]
        if name == "aten::roll":
            return [size_of(out)] if len(args) > 2 and len(args[2]) > 1 and out.numel() else []
        if name == "aten::huber_loss":
            return [largest(args[:2]) * out.element_size()] if reduced(args, 2) else []
        if name == "aten::count_nonzero":
            return [args[0].numel()] if args[0].numel() else []
        if name in ("aten::im2col", "aten::col2im"):
            return [size_of(args[0])] if size_of(args[0]) < size_of(out) else []
        if name == "aten::masked_scatter_backward":
            # Where the mask holds, as often as there are values.
            return [out.numel() * args[0].dim() * 8] if out.numel() else []
        return []

    # Bytes that it takes when its result is there.
    def after(self, func, args, kwargs, out):
        return self.behind.sizes(func._schema.name, args, kwargs, out)

    # A mean is made in the storage of what it is the mean of, what is folded in one that has the
    # size of what it is made of.
    def as_made(self, func, args, kwargs, out):
        name = func._schema.name
        if name in self.AVERAGED:
            at = 3 if name == "aten::binary_cross_entropy" else 2
            mean = reduced(args, at) and "reduction" not in kwargs
            size = largest(args[:2]) if mean else 0
        elif name in ("aten::im2col", "aten::col2im"):
            size = args[0].numel() if args[0].dtype == out.dtype else 0
        else:
            return out
        if size <= out.numel():
            return out
        with self.tracer.fake:
            whole = self.torch.empty(size, dtype=out.dtype, device="cuda")
            return whole.as_strided(out.shape, out.stride())
