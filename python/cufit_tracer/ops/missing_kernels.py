# SPDX-License-Identifier: Apache-2.0
"""Operators that have no fake kernel: by name what they return, made as the kernels of a GPU make
it. What else such a kernel makes is held until its result is there."""

from .composite_ops import encoder_layer, grouped_products, logits_loss
from .even_counts import spread
from .sequences import ctc_kernels, packing_kernels
from .sparse import sparse_kernels


# By operator.
def kernels_by_operator(tracer):
    aten = tracer.torch.ops.aten
    found = {}
    for kernels in (
        plain_kernels(tracer.torch),
        quantised_kernels(tracer.torch),
        value_kernels(tracer),
        packing_kernels(tracer),
        ctc_kernels(tracer),
        sparse_kernels(tracer),
    ):
        found.update(kernels)
    found = {
        getattr(getattr(aten, name), overload or "default"): kernel
        for name, overload, kernel in ((*n.partition(".")[::2], found[n]) for n in found)
        if hasattr(aten, name)
    }
    for name in ("mm", "bmm", "addmm", "baddbmm"):
        for overload in ("dtype", "dtype_out"):
            if hasattr(getattr(aten, name), overload):
                found[getattr(getattr(aten, name), overload)] = typed_product
    return found


# Products with a type of their own, which PyTorch 2.11 takes apart wrongly.
def typed_product(*args, out=None, **kwargs):
    a, b, dtype = args[-3:]
    return a.new_empty(*a.shape[:-1], b.shape[-1], dtype=dtype) if out is None else out


def plain_kernels(torch):
    like = torch.empty_like

    def first(a, *args, **kwargs):
        return like(a)

    def second(a, b, *args, **kwargs):
        return like(b)

    def gru_cell(inputs, hidden, hx, input_bias=None, hidden_bias=None):
        kept = hx.new_empty(hx.shape[0], 5 * hx.shape[1])
        return like(hx), kept

    def gru_cell_backward(grad, kept, has_bias):
        gates = [grad.new_empty(grad.shape[0], 3 * grad.shape[1]) for _ in range(2)]
        return (*gates, like(grad), *(gate.sum(0) if has_bias else None for gate in gates))

    def dirichlet(alpha, generator=None):
        drawn = like(alpha)
        return like(drawn)

    return {
        "_grouped_mm": grouped_products,
        "_thnn_fused_gru_cell": gru_cell,
        "_thnn_fused_gru_cell_backward": gru_cell_backward,
        "cudnn_grid_sampler": lambda x, grid: x.new_empty(*x.shape[:2], *grid.shape[1:-1]),
        "cudnn_grid_sampler_backward": lambda x, grid, grad: (like(x), like(grid)),
        "_standard_gamma": first,
        "_standard_gamma_grad": first,
        "_dirichlet_grad": first,
        "_sample_dirichlet": dirichlet,
        "binomial": first,
        "multi_margin_loss_backward": second,
        "multilabel_margin_loss_backward": second,
        "geqrf": lambda a: (like(a), a.new_empty(*a.shape[:-2], min(a.shape[-2:]))),
        "_transformer_encoder_layer_fwd": encoder_layer(torch),
        "binary_cross_entropy_with_logits": logits_loss(torch),
        # Whether padding is at the end decides if TransformerEncoder leaves it out in evaluation:
        # reckoned with it.
        "_nested_tensor_from_mask_left_aligned": lambda *args: False,
    }


def quantised_kernels(torch):
    like = torch.empty_like

    def learnable(x, *args, **kwargs):
        return like(x)

    def learnable_backward(grad, x, scale, zero, *args, **kwargs):
        out, each, other = like(x), like(x), like(x)
        result = out, like(scale), like(zero)
        del each, other
        return result

    def with_mask(x, *args, **kwargs):
        return like(x), like(x, dtype=torch.bool)

    return {
        "_fake_quantize_learnable_per_tensor_affine": learnable,
        "_fake_quantize_learnable_per_channel_affine": learnable,
        "_fake_quantize_learnable_per_tensor_affine_backward": learnable_backward,
        "_fake_quantize_learnable_per_channel_affine_backward": learnable_backward,
        "fake_quantize_per_tensor_affine_cachemask": with_mask,
        "fake_quantize_per_channel_affine_cachemask": with_mask,
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": with_mask,
    }


# Whose results need values.
def value_kernels(tracer):
    torch = tracer.torch

    def known_of(t):
        return tracer.shadows.get(t) if isinstance(t, tracer.FakeTensor) else t

    def equal(a, b):
        if a.shape != b.shape:
            return False
        if a is b:
            return True
        known = [known_of(t) for t in (a, b)]
        if known[0] is not None and known[1] is not None:
            return torch.equal(*known)
        tracer.file.note("data_dependent", "bool value read; False was given", tracer.source())
        torch.empty_like(a, dtype=torch.bool)
        return False

    # With a length given, as metrics give the number of classes, no value is greater.
    def bincount(x, weights=None, minlength=0):
        known = tracer.shadows.get(x) if isinstance(x, tracer.FakeTensor) else None
        if known is not None and weights is None:
            counts = torch.bincount(known, minlength=minlength)
            return torch.ops.aten._to_copy.default(counts, device=x.device)
        if not minlength:
            raise tracer.DynamicShape(torch.ops.aten.bincount.default)
        if weights is None:
            counts = x.new_empty(minlength, dtype=torch.int64)
            tracer.shadows[counts] = spread(torch, x.numel(), minlength)
            return counts
        single = weights.dtype == torch.float32
        return x.new_empty(minlength, dtype=torch.float32 if single else torch.float64)

    return {"equal": equal, "bincount": bincount}
