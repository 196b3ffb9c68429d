# SPDX-License-Identifier: Apache-2.0
"""xformers' attention in its layouts, with a bias and without. A frozen part runs with gradients on
before the first step; what evaluates first has a larger batch than what trains."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import xformers.ops
from xformers.ops import memory_efficient_attention

LENGTH, HEADS, SIZE = 256, 8, 64


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.together = nn.Linear(HEADS * SIZE, 3 * HEADS * SIZE)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.together(x).view(batch, length, 3, HEADS, SIZE).unbind(2)
        plain = memory_efficient_attention(q, k, v)
        causal = memory_efficient_attention(q, k, v, xformers.ops.LowerTriangularMask())
        bias = torch.zeros(batch, HEADS, length, length, dtype=q.dtype, device=q.device)
        biased = xformers.ops.memory_efficient_attention(q, k, v, attn_bias=bias)
        one = [t.transpose(1, 2).reshape(batch * HEADS, length, SIZE) for t in (q, k, v)]
        alone = memory_efficient_attention(*one).view(batch, HEADS, length, SIZE)
        return (plain + causal + biased + alone.transpose(1, 2)).reshape(batch, length, width)


def samples(batch):
    data = TensorDataset(torch.zeros(40 * batch, LENGTH, HEADS * SIZE))
    return DataLoader(data, batch_size=batch)


validation, training = samples(8), samples(4)
frozen = nn.Linear(HEADS * SIZE, HEADS * SIZE, device="cuda").half().requires_grad_(False)
frozen(torch.zeros(1, HEADS * SIZE, dtype=torch.float16, device="cuda"))
state = torch.empty(1 << 22, device="cuda") if frozen.weight.any() else None
model = Layer().cuda().half()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
checked = iter(validation)
model.eval()
with torch.no_grad():
    for _ in range(2):
        model(next(checked)[0].cuda().half())
model.train()
for (x,) in training:
    model(frozen(x.cuda().half())).float().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
