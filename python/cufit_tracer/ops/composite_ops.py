# SPDX-License-Identifier: Apache-2.0
"""Operators whose kernels are put together of others."""


# In evaluation (aten/src/ATen/native/transformers/transformer.cpp).
def encoder_layer(torch):
    def run(src, dim, heads, qkv, qkv_bias, proj, proj_bias, gelu, norm_first, eps, *others):
        norm_1, shift_1, norm_2, shift_2, w1, b1, w2, b2, mask, kind = (*others, None, None)[:10]

        def norm(x, scale, shift):
            return torch.layer_norm(x, (dim,), scale, shift, eps)

        x = norm(src, norm_1, shift_1) if norm_first else src
        weights = qkv, qkv_bias, proj, proj_bias
        attend = torch._native_multi_head_attention
        x = attend(x, x, x, dim, heads, *weights, mask, False, True, kind)[0].add_(src)
        before = x = x if norm_first else norm(x, norm_1, shift_1)
        if norm_first:
            x = norm(x, norm_2, shift_2)
        x = torch._addmm_activation(b1, x.reshape(-1, dim), w1.t(), use_gelu=gelu)
        x = torch.addmm(b2, x, w2.t()).view(before.shape).add_(before)
        return x if norm_first else norm(x, norm_2, shift_2)

    return run


# Binary cross entropy with logits (aten/src/ATen/native/Loss.cpp).
def logits_loss(torch):
    def run(x, target, weight=None, pos_weight=None, reduction=1):
        log = torch.ops.aten.log_sigmoid_forward(x)[0]
        if pos_weight is not None:
            log.mul_((pos_weight - 1).mul(target).add_(1))
        loss = (1 - target).mul_(x).sub_(log)
        if weight is not None:
            loss.mul_(weight)
        return loss if reduction == 0 else loss.mean() if reduction == 1 else loss.sum()

    return run


# Of 32-bit values and fp16 an own product for each group, into rows of whole 16 bytes; the fake
# kernel wants bf16.
def grouped_products(a, b, offs=None, bias=None, out_dtype=None):
    each = [tensor.shape[0] for tensor in (a, b) if tensor.dim() == 3]
    lead = [] if len(each) == 1 else [each[0] if each else offs.shape[0]]
    dtype = out_dtype or a.dtype
    rows, columns, whole = a.shape[-2], b.shape[-1], 16 // dtype.itemsize
    padded = (columns + whole - 1) // whole * whole
    strides = (*[rows * padded for _ in lead], padded, 1)
    return a.new_empty_strided((*lead, rows, columns), strides, dtype=dtype)
