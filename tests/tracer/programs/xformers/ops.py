# SPDX-License-Identifier: Apache-2.0


class LowerTriangularMask:
    pass


def memory_efficient_attention(query, key, value, attn_bias=None, p=0.0, scale=None, *, op=None):
    raise NotImplementedError("No operator found for `memory_efficient_attention_forward`")
