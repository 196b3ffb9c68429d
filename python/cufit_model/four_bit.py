# SPDX-License-Identifier: Apache-2.0
"""Weights of four bits."""

import torch

from .layers import features, is_linear, replace
from .ranks import SHARDED
from .spec import AUTOCAST, SPEC, WEIGHTS, note


BLOCK, NESTED_BLOCK = 64, 256  # values to a scale, scales to a scale of scales: bitsandbytes' own


class FourBitMatmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, layer, bias):
        ctx.layer = layer
        return torch.nn.functional.linear(x, layer.whole(x.dtype), bias)

    @staticmethod
    def backward(ctx, grad):
        return grad.matmul(ctx.layer.whole(grad.dtype)), None, None


# FSDP deals out parameters of one floating type: then that is what the halves of bytes lie in
# (bitsandbytes' `quant_storage`), in the processor's memory until they are dealt out.
def packed(elements):
    if not SHARDED:
        return torch.empty(((elements + 1) // 2, 1), dtype=torch.uint8, device="cuda")
    dtype = AUTOCAST or WEIGHTS
    size = dtype.itemsize * 2
    return torch.empty(((elements + size - 1) // size, 1), dtype=dtype)


class Linear4bit(torch.nn.Linear):
    """NF4 with double quantisation: the storages of bitsandbytes' layer, and what it makes for the
    length of a product."""

    def __init__(self, base):
        inside, outside = features(base)
        torch.nn.Module.__init__(self)
        self.in_features, self.out_features = inside, outside
        elements = inside * outside

        def make(size, dtype):
            return torch.empty(size, dtype=dtype, device="cuda")

        blocks = (elements + BLOCK - 1) // BLOCK
        self.weight = torch.nn.Parameter(packed(elements), requires_grad=False)
        self.scales = make(blocks, torch.uint8)
        self.scales_of_scales = make((blocks + NESTED_BLOCK - 1) // NESTED_BLOCK, torch.float32)
        self.codes = make(16, torch.float32), make(256, torch.float32), make((), torch.float32)
        bias = getattr(base, "bias", None)
        self.bias = (
            torch.nn.Parameter(bias.detach().to(AUTOCAST or WEIGHTS), requires_grad=False)
            if bias is not None
            else None
        )

    def whole(self, dtype):
        scales = torch.empty(self.scales.shape, dtype=torch.float32, device="cuda")
        scales += self.codes[2]
        return torch.empty((self.out_features, self.in_features), dtype=dtype, device="cuda")

    def forward(self, x, *args, **kwargs):
        kind = x.dtype
        dtype = AUTOCAST or WEIGHTS
        bias = None if self.bias is None else self.bias.to(dtype)
        with torch.autocast("cuda", enabled=False):
            return FourBitMatmul.apply(x.to(dtype), self, bias).to(kind)


def quantise(model):
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    elements = []

    def make(layer):
        elements.append(layer.weight.numel())
        return Linear4bit(layer)

    paths = replace(
        model,
        lambda path, m: is_linear(m) and m is not head and not isinstance(m, Linear4bit),
        make,
    )
    four_bit = {id(m.weight) for m in model.modules() if isinstance(m, Linear4bit)}
    note(
        "four_bit",
        "{:,} / {:,}".format(
            sum(elements),
            sum(elements) + sum(p.numel() for p in model.parameters() if id(p) not in four_bit),
        ),
    )
    # As peft's prepare_model_for_kbit_training: what is left in half precision becomes fp32;
    # diffusers leaves it.
    for parameter in model.parameters():
        parameter.requires_grad_(False)
        half = parameter.dtype in (torch.float16, torch.bfloat16) and id(parameter) not in four_bit
        if SPEC["library"] == "transformers" and half:
            parameter.data = parameter.data.to(torch.float32)
    return paths
