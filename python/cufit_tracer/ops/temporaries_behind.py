# SPDX-License-Identifier: Apache-2.0
"""Memory that kernels take when their result is there, by operator."""

from ..tensors import size_of, largest
from .convolution_copies import formats_of, last_first
from .unique import UNIQUE


class TemporariesBehind:
    # Longest row that sort() keeps in a thread block (aten/src/ATen/native/cuda/Sort.cpp).
    SORTED_BY_PARTS = 4096
    FEW_ROWS = 128  # fewer of them are sorted with two more copies
    ADDED = ("aten::sum", "aten::mean", "aten::prod", "aten::nansum")
    SCANNED = ("aten::cumsum", "aten::cumprod")
    IN_ONE_PIECE = {  # so many operands, behind the result
        "aten::_softmax": 1,
        "aten::_log_softmax": 1,
        "aten::_log_softmax_backward_data": 2,
        "aten::upsample_bicubic2d_backward": 1,
        "aten::_upsample_bilinear2d_aa": 1,
        "aten::_upsample_bilinear2d_aa_backward": 1,
    }
    # The gradient and the input in the format of the input; behind the result.
    AS_THE_INPUT = ("aten::max_pool2d_with_indices_backward", "aten::avg_pool2d_backward")
    PUTS = (
        "aten::index_put",
        "aten::index_put_",
        "aten::_index_put_impl_",
        "aten::_unsafe_index_put",
    )

    def __init__(self, torch):
        self.torch = torch
        self.by_operator = {
            "aten::count_nonzero": self.of_numbers,
            "aten::mse_loss": self.of_loss,
            "aten::smooth_l1_loss": self.of_loss,
            "aten::_adaptive_avg_pool2d_backward": self.of_average_gradient,
            "aten::sort": self.of_sort,
            "aten::masked_scatter": self.of_places,
            "aten::masked_scatter_": self.of_places,
            "aten::scatter_reduce": self.of_scattered_mean,
            "aten::logsumexp": self.of_logsumexp,
            "aten::_safe_softmax": self.of_masked_rows,
            "aten::_softmax_backward_data": self.of_copy,  # gradient times output
            "torchvision::nms": self.of_boxes,
            "aten::multinomial": self.of_multinomial,
            "aten::abs": self.of_complex,
            "aten::adaptive_max_pool2d": self.of_adaptive_pool,
            "aten::adaptive_max_pool2d_backward": self.of_adaptive_pool_gradient,
            "aten::_cdist_backward": self.of_distances,
            "aten::_pdist_backward": self.of_own_distances,
            "torchvision::deform_conv2d": self.of_deformed,
            "torchvision::_deform_conv2d_backward": self.of_deformed_gradient,
        }
        for names, sizes in (
            (self.ADDED, self.of_sum),
            (self.SCANNED, self.of_scan),
            (self.AS_THE_INPUT, self.of_pool_gradient),
            (self.PUTS, self.of_sums_by_index),
            (UNIQUE, self.of_unique),
        ):
            self.by_operator.update(dict.fromkeys(names, sizes))
        for name, count in self.IN_ONE_PIECE.items():
            self.by_operator[name] = self.pieces(count)

    def sizes(self, name, args, kwargs, out):
        sizes = self.by_operator.get(name)
        x = args[0] if args and isinstance(args[0], self.torch.Tensor) else None
        if sizes is None or x is None or not x.numel():
            return []
        return sizes(x, args, kwargs, out)

    # -- sums

    def of_sum(self, x, args, kwargs, out):
        half = x.dtype in (self.torch.float16, self.torch.bfloat16)
        fused = half and out.dtype == self.torch.float32
        return [] if fused else self.of_scan(x, args, kwargs, out)

    def of_scan(self, x, args, kwargs, out):
        return [x.numel() * out.element_size()] if x.dtype != out.dtype else []

    def of_numbers(self, x, args, kwargs, out):
        return [x.numel() * 8]

    def of_loss(self, x, args, kwargs, out):
        return [largest(args[:2]) * out.element_size()] if reduced(args, 2) else []

    def of_copy(self, x, args, kwargs, out):
        return [size_of(x)]

    # Its input less the greatest, and those.
    def of_logsumexp(self, x, args, kwargs, out):
        return [size_of(x) + size_of(out)]

    # Which rows are masked whole.
    def of_masked_rows(self, x, args, kwargs, out):
        return [x.numel()]

    def of_complex(self, x, args, kwargs, out):
        return [size_of(x)] if x.is_complex() else []

    # -- operands in one piece

    def pieces(self, count):
        def sizes(x, args, kwargs, out):
            return [size_of(t) for t in args[:count] if not t.is_contiguous()]

        return sizes

    def of_pool_gradient(self, x, args, kwargs, out):
        if len(args) < 2:
            return []
        wanted = self.torch.contiguous_format
        if last_first(args[1]):
            wanted = formats_of(self.torch)[args[1].dim()]
        return [size_of(t) for t in args[:2] if not t.is_contiguous(memory_format=wanted)]

    # By strides where the input is channels last.
    def of_average_gradient(self, x, args, kwargs, out):
        return [] if last_first(args[1]) or args[0].is_contiguous() else [size_of(args[0])]

    def of_adaptive_pool(self, x, args, kwargs, out):
        if args[0].is_contiguous():
            return []
        return [size_of(t) for t in (x, *(out if isinstance(out, tuple) else (out, args[-1])))]

    def of_adaptive_pool_gradient(self, x, args, kwargs, out):
        if args[-1].is_contiguous():
            return []
        return [size_of(t) for t in (x, *(out if isinstance(out, tuple) else (out, args[-1])))]

    # -- orders and places

    def of_sort(self, x, args, kwargs, out):
        dim = kwargs.get("dim", next((value for value in args[1:] if type(value) is int), -1))
        length = x.shape[dim] if x.dim() else 1
        if length <= self.SORTED_BY_PARTS:
            return []
        rows, each = x.numel() // length, x.element_size()
        more = [x.numel() * 8, size_of(x)] if 1 < rows < self.FEW_ROWS else []
        return [x.numel() * 8, x.numel() * (each + 8), *more]

    # Sorted, and once more with where they came from.
    def of_unique(self, x, args, kwargs, out):
        return [size_of(x)] * (4 if out[1].numel() else 2)

    # How many of the mask hold before each.
    def of_places(self, x, args, kwargs, out):
        return [out.numel() * 8]

    def of_scattered_mean(self, x, args, kwargs, out):
        return [size_of(out), size_of(out), out.numel()] if args[4] == "mean" else []

    # Gradients that meet in the same places are sorted by them: six numbers for each
    # (aten/src/ATen/native/cuda/Indexing.cu).
    def of_sums_by_index(self, x, args, kwargs, out):
        torch = self.torch
        indices = [index for index in args[1] if index is not None]
        if len(args) < 4 or not args[3]:
            return []
        if any(index.dtype in (torch.bool, torch.uint8) for index in indices):
            return []
        count = torch.broadcast_shapes(*(index.shape for index in indices)).numel()
        return [count * 8] * 6 if count else []

    def of_multinomial(self, x, args, kwargs, out):
        return [size_of(x)] * (3 if len(args) > 2 and args[2] else 1)

    # -- pairs, pictures

    # Which boxes overlap, a bit for each two.
    def of_boxes(self, x, args, kwargs, out):
        return [len(x) * ((len(x) + 63) // 64) * 8]

    def of_distances(self, x, args, kwargs, out):
        return [args[1].numel() * args[2].shape[-2] * x.element_size()] if args[3] else []

    def of_own_distances(self, x, args, kwargs, out):
        return [args[1].numel() * (args[1].shape[0] - 1) * x.element_size()]

    # What the kernel reads of its input for each place of its output, of at most 32 pictures at
    # once.
    def of_deformed(self, x, args, kwargs, out):
        x, weight, offset = args[:3]
        pictures = next(n for n in range(min(32, x.shape[0]), 0, -1) if x.shape[0] % n == 0)
        columns = x.shape[1] * weight.shape[2] * weight.shape[3]
        columns *= pictures * offset.shape[2] * offset.shape[3] * x.element_size()
        return [columns] + [size_of(out)] * 2 if isinstance(out, self.torch.Tensor) else [columns]

    def of_deformed_gradient(self, x, args, kwargs, out):
        return self.of_deformed(args[1], args[1:], kwargs, out)


def reduced(args, at):
    return len(args) <= at or args[at] != 0
