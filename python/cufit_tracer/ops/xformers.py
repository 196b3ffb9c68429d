# SPDX-License-Identifier: Apache-2.0
"""`xformers.ops.memory_efficient_attention`, whose compiled kernels cannot run on pretended
tensors: answered by those of PyTorch that take the same. xformers takes the first of its kernels
that can: flash attention in half precision from compute capability 8.0 on, which knows no tensor as
a bias, else CUTLASS's."""

import inspect

from .attention import Asked


def patch_xformers(tracer, ops):
    torch = tracer.torch
    for name in ("memory_efficient_attention", "memory_efficient_attention_forward"):
        real = getattr(ops, name, None)
        if real is None:
            continue
        for module in (ops, getattr(ops, "fmha", None)):
            if getattr(module, name, None) is real:
                setattr(module, name, answered(tracer, torch, real))


def answered(tracer, torch, real):
    def memory_efficient_attention(
        query, key, value, attn_bias=None, p=0.0, scale=None, *args, **kwargs
    ):
        if query.device.type != "cuda":
            return real(query, key, value, attn_bias, p, scale, *args, **kwargs)
        with torch.autocast("cuda", enabled=False):  # it takes its operands as they are
            out = attend(tracer, query, key, value, attn_bias, p, scale)
        return out.to(kwargs["output_dtype"]) if kwargs.get("output_dtype") else out

    memory_efficient_attention.__doc__ = inspect.getdoc(real)
    return memory_efficient_attention


# Operands are [batch, tokens, heads, size], of one head without that, or of groups of heads.
def attend(tracer, query, key, value, bias, dropout, scale):
    torch, dimensions, shape = tracer.torch, query.dim(), query.shape
    if dimensions == 3:
        query, key, value = (t.unsqueeze(2) for t in (query, key, value))
    elif dimensions == 5:
        query, key, value = (t.flatten(2, 3) for t in (query, key, value))
    query, key, value = (t.transpose(1, 2) for t in (query, key, value))
    causal = "LowerTriangular" in type(bias).__name__
    if not isinstance(bias, torch.Tensor):  # a mask of tokens holds numbers alone, or one
        bias = getattr(bias, "_bias", None)
    if not isinstance(bias, torch.Tensor):
        bias = None
    elif dimensions != 4:
        bias = bias.unsqueeze(1) if bias.dim() == 3 else bias.flatten(1, 2)
    asked = Asked(tracer, query, key, value, bias, dropout, causal, scale, False)
    out = asked.by_flash() if asked.flash_takes() else asked.by_efficient()
    out = out[0].transpose(1, 2)
    if dimensions == 3:
        return out.squeeze(2)
    return out.unflatten(2, shape[2:4]) if dimensions == 5 else out
