# SPDX-License-Identifier: Apache-2.0
"""Attention with and without a mask, with grouped heads, in half precision and in full."""

import torch
from torch import nn
from torch.nn import functional as F

BATCH, HEADS, LENGTH, SIZE = 4, 8, 128, 64


class Layer(nn.Module):
    def __init__(self, dtype, heads_of_keys=HEADS, masked=False):
        super().__init__()
        width = HEADS * SIZE
        self.heads_of_keys, self.masked = heads_of_keys, masked
        self.query = nn.Linear(width, width, dtype=dtype)
        self.pair = nn.Linear(width, 2 * heads_of_keys * SIZE, dtype=dtype)
        self.out = nn.Linear(width, width, bias=False, dtype=dtype)

    def forward(self, x):
        batch, length, width = x.shape
        query = self.query(x).view(batch, length, HEADS, SIZE).transpose(1, 2)
        key, value = (
            self.pair(x)
            .view(batch, length, 2 * self.heads_of_keys, SIZE)
            .transpose(1, 2)
            .chunk(2, dim=1)
        )
        mask = (
            torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
            if self.masked
            else None
        )
        grouped = self.heads_of_keys != HEADS
        y = F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=mask is None, enable_gqa=grouped
        )
        return x + self.out(y.transpose(1, 2).reshape(batch, length, width))


for dtype in (torch.bfloat16, torch.float32):
    model = nn.Sequential(
        Layer(dtype),
        Layer(dtype, masked=True),
        Layer(dtype, 2),
        nn.MultiheadAttention(512, 4, dtype=dtype, batch_first=True),
    )
    attention = model[3]
    model.cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        x = torch.randn(BATCH, LENGTH, HEADS * SIZE, device="cuda", dtype=dtype)
        y = model[:3](x)
        y = attention(y, y, y, need_weights=False)[0]
        y.float().pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    encoder = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dtype=dtype).cuda().eval()
    with torch.no_grad():
        encoder(torch.randn(2, 16, 128, device="cuda", dtype=dtype))
