# SPDX-License-Identifier: Apache-2.0
"""Threads that read weights and change them, as transformers loads a model; then steps."""

import sys
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

sys.setswitchinterval(1e-6)  # they take turns within an operator


def read(number):
    return torch.ones(10000 + 1000 * number).to("cuda").mul(2).add(1)


with ThreadPoolExecutor(4) as pool:
    weights = list(pool.map(read, range(200)))
model = nn.Linear(64, 64).cuda()
model.read = nn.ParameterList(nn.Parameter(weight, requires_grad=False) for weight in weights)
optimizer = torch.optim.SGD([model.weight, model.bias], lr=0.1)
for _ in range(10):
    model(torch.ones(8, 64, device="cuda")).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
