# SPDX-License-Identifier: Apache-2.0
"""Scaled dot product attention picks its kernel by the GPU, which is not there.

The choice below is what torch 2.11 with cuDNN 9.19 made on an H100 in 480 combinations of type,
head size, mask and grouping: cuDNN's on compute capability 9.0 and 10.0, else flash, which takes no
mask, else the memory-efficient one, which takes no grouped heads, else the plain products."""

import os

from .script import as_builtin

FLASH, EFFICIENT, CUDNN = range(3)
ATTENTION = {
    "aten::_scaled_dot_product_flash_attention": FLASH,
    "aten::_scaled_dot_product_efficient_attention": EFFICIENT,
    "aten::_scaled_dot_product_cudnn_attention": CUDNN,
}
ATTENTION_BACKWARD = {name + "_backward": kind for name, kind in ATTENTION.items()}


def patch_attention(tracer):
    torch = tracer.torch
    functional = torch.nn.functional
    real = functional.scaled_dot_product_attention

    def attention(
        query,
        key,
        value,
        attn_mask=None,
        dropout_p=0.0,
        is_causal=False,
        scale=None,
        enable_gqa=False,
    ):
        more = {"scale": scale, "enable_gqa": enable_gqa}
        if query.device.type != "cuda":
            return real(query, key, value, attn_mask, dropout_p, is_causal, **more)
        if torch.is_autocast_enabled("cuda"):
            dtype = torch.get_autocast_dtype("cuda")
            with torch.autocast("cuda", enabled=False):
                query, key, value, attn_mask = (
                    t.to(dtype) if is_cast(torch, t) else t for t in (query, key, value, attn_mask)
                )
                return attention(query, key, value, attn_mask, dropout_p, is_causal, **more)
        made = Asked(
            tracer, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
        ).run()
        return made[0]

    attention.__name__ = real.__name__  # context_parallel replaces it by its name
    tracer.attention = attention
    as_builtin(torch, attention, "aten::scaled_dot_product_attention")
    functional.scaled_dot_product_attention = attention
    torch._C._nn.scaled_dot_product_attention = attention


def is_cast(torch, t):
    return t is not None and t.dtype.is_floating_point and t.dtype != torch.float64


# Whether cuDNN's goes first on 9.0 and 10.0: torch 2.10 and later ask for cuDNN 9.15.1 or later
# (the wheel of 2.10 for CUDA 12.8 has 9.10: no); 2.5.0 did, 2.5.1 (pytorch/pytorch#138522) to 2.9.1
# do not.
def cudnn_attention_first(tracer):
    version, backends = tracer.version, tracer.torch.backends.cuda
    if tracer.capability not in ((9, 0), (10, 0)):
        return False
    if not getattr(backends, "cudnn_sdp_enabled", lambda: False)():
        return False
    if version >= (2, 10):
        unwanted = os.environ.get("TORCH_CUDNN_SDPA_DEPRIORITIZED") == "1"
        return tracer.cudnn_version > 91500 and not unwanted
    return version == (2, 5) and tracer.torch.__version__.startswith("2.5.0")


class Asked:
    """One call, and what each fused kernel asks for."""

    def __init__(self, tracer, query, key, value, mask, dropout, causal, scale, grouping):
        torch = self.torch = tracer.torch
        self.tracer, self.aten = tracer, torch.ops.aten
        self.composed = type(query) in tracer.composed
        self.query, self.key, self.value, self.mask = query, key, value, mask
        self.dropout, self.causal, self.scale, self.grouping = dropout, causal, scale, grouping
        self.half = query.dtype in (torch.float16, torch.bfloat16)
        self.four = query.dim() == key.dim() == value.dim() == 4
        self.size = max(query.shape[-1], value.shape[-1])
        self.rows = self.in_rows()
        self.grouped = grouping and self.four and key.shape[1] != query.shape[1]
        self.grad = torch.is_grad_enabled() and (
            query.requires_grad or key.requires_grad or value.requires_grad
        )

    def in_rows(self):
        query, key, value = self.query, self.key, self.value
        if not all(
            t is None or t.stride(-1) == 1 or t.shape[-1] == 1
            for t in (query, key, value, self.mask)
        ):
            return False
        if not self.four or query.shape[0] != key.shape[0] or key.shape[:2] != value.shape[:2]:
            return False
        return self.grouping or query.shape[1] == key.shape[1]

    # Of what is composed each part tells of its own call (tell_call).
    def call(self, kind, attend, *args, **kwargs):
        tracer, before = self.tracer, self.tracer.attends
        if self.composed:
            return attend(*args, **kwargs)
        tracer.attends = True
        try:
            if kind != CUDNN:
                attention_call(tracer, self.query, self.key, kind)
            return attend(*args, **kwargs)
        finally:
            tracer.attends = before
            if kind == CUDNN:
                attention_call(tracer, self.query, self.key, kind)

    # The result, and what is held as long as the operands are.
    def run(self):
        if self.cudnn_takes():
            return self.by_cudnn()
        if self.flash_takes():
            return self.by_flash()
        if self.efficient_takes():
            return self.by_efficient()
        more = {"enable_gqa": True} if self.grouping else {}
        tensors = self.query, self.key, self.value, self.mask
        out = self.aten._scaled_dot_product_attention_math(
            *tensors, self.dropout, self.causal, scale=self.scale, **more
        )[0]
        return (out,)

    def cudnn_takes(self):
        mask, fits = self.mask, self.size <= 256 and self.size % 8 == 0
        # It does not give the gradient of a mask.
        learned = mask is not None and mask.requires_grad and self.torch.is_grad_enabled()
        if not cudnn_attention_first(self.tracer) or not self.rows or learned:
            return False
        return self.half and self.four and fits and self.query.shape[2] > 1

    def by_cudnn(self):
        mask = self.bias()
        if mask is not None:
            mask = self.expanded(mask)
        out = self.call(
            CUDNN,
            self.aten._scaled_dot_product_cudnn_attention,
            self.query,
            self.key,
            self.value,
            mask,
            self.grad,
            self.dropout,
            self.causal,
            False,
            scale=self.scale,
        )
        return out[0], out, mask

    def flash_takes(self):
        wanted = self.torch.backends.cuda.flash_sdp_enabled() and self.mask is None
        fits = self.tracer.capability >= (8, 0) and self.size <= 256
        return wanted and self.rows and self.half and self.four and fits

    def by_flash(self):
        query, key, value = self.query, self.key, self.value
        q, k, v = self.padded(query), self.padded(key), self.padded(value)
        scale = self.scale if self.scale is not None else query.shape[-1] ** -0.5
        attend = self.aten._scaled_dot_product_flash_attention
        out = self.call(FLASH, attend, q, k, v, self.dropout, self.causal, scale=scale)[0]
        return out[..., : value.shape[-1]], v, k, q

    def efficient_takes(self):
        # Values of a head that it loads at once (minimum_gemm_alignment).
        even = 8 if self.half else 4 if self.tracer.capability >= (8, 0) else 1
        fits = self.size % even == 0 and self.value.shape[-1] % even == 0
        # Since torch 2.14 (pytorch/pytorch#191085) it takes grouped heads, too.
        fits = fits and (not self.grouped or self.tracer.version >= (2, 14))
        wanted = self.torch.backends.cuda.mem_efficient_sdp_enabled()
        return wanted and self.rows and self.four and fits

    def by_efficient(self):
        if self.grouped and self.grad:
            self.tracer.file.note(
                "assumed",
                "what the memory-efficient attention kernel takes to add up the gradients of "
                "grouped heads is not counted",
                self.tracer.source(),
            )
        mask = self.bias()
        if mask is not None:
            rest = mask.shape[-1] % 8
            if rest:
                pad = self.torch.nn.functional.pad
                mask = pad(mask, (0, 8 - rest))[..., : self.mask.shape[-1]]
            mask = self.expanded(mask)
        attend = self.aten._scaled_dot_product_efficient_attention
        given = self.query, self.key, self.value, mask, self.grad, self.dropout, self.causal
        return self.call(EFFICIENT, attend, *given, scale=self.scale)[0], mask

    # A mask of yes and no as numbers that are added.
    def bias(self):
        torch, mask = self.torch, self.mask
        if mask is None or mask.dtype != torch.bool:
            return mask
        zero = torch.scalar_tensor(0.0, dtype=self.query.dtype, device="cuda")
        least = torch.scalar_tensor(float("-inf"), dtype=self.query.dtype, device="cuda")
        return torch.where(mask, zero, least)

    def padded(self, tensor):
        rest = tensor.shape[-1] % 8
        return self.torch.nn.functional.pad(tensor, (0, 8 - rest)) if rest else tensor

    def expanded(self, mask):
        shape = self.query.shape[0], self.query.shape[1], self.query.shape[2], self.key.shape[2]
        return mask.expand(*shape)


# kind: 0 flash, 1 memory-efficient, 2 cuDNN, 3 plain; 8 more in backward.
def attention_call(tracer, query, key, kind):
    if tracer.compiling:
        return
    module = tracer.modules[-1] if tracer.modules else ""
    site = tracer.file.site("sdpa", module, tracer.source(), tracer.phase)
    numbers = [kind, query.element_size() * 8, *query.shape[:3]]
    tracer.file.call(site, [*numbers, key.shape[2], query.shape[3], key.shape[1]])
