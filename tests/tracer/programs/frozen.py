# SPDX-License-Identifier: Apache-2.0
"""Weights and buffers that come from the CPU as batches do, and are looked at between the steps."""

import torch


class Masked(torch.nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = torch.nn.Parameter(weight, requires_grad=False)
        self.scale = torch.nn.Parameter(torch.ones(64))
        self.register_buffer("mask", torch.ones(64, 64).tril())

    def forward(self, x):
        return x @ (self.weight * self.mask) * self.scale


model = Masked(torch.randn(64, 64).to("cuda", torch.bfloat16).float()).cuda()
sgd = torch.optim.SGD([model.scale], lr=0.1)
for _ in range(3):
    model(torch.randn(16, 64).cuda()).sum().backward()
    sgd.step()
    sgd.zero_grad()
    state = {name: value.detach().view(-1) for name, value in model.state_dict().items()}
