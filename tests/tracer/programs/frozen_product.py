# SPDX-License-Identifier: Apache-2.0
"""A frozen weight that only a function of the program's own multiplies by, forward and backward, as
fused LoRA kernels do; batches from files."""

import torch
from torch import nn


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad):
        (weight,) = ctx.saved_tensors
        return grad @ weight.t(), None


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 96)
        read = torch.tensor([[0.5] * 32] * 96)  # as of a checkpoint
        self.frozen = nn.Parameter(read.to("cuda"), requires_grad=False)

    def forward(self, x):
        return Product.apply(self.first(x), self.frozen)


model = Model().cuda()
optimizer = torch.optim.SGD(model.first.parameters(), lr=0.1)
for _ in range(10):
    batch = torch.ones(8, 64).cuda()
    model(batch).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
