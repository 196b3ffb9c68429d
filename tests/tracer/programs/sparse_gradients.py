# SPDX-License-Identifier: Apache-2.0
"""A table with sparse gradients that is looked up twice in a step."""

import torch
from torch import nn

table = nn.Embedding(5000, 16, sparse=True).cuda()
layer = nn.Linear(16, 1).cuda()
sparse = torch.optim.SparseAdam(table.parameters())
dense = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(3):
    first = torch.randint(0, 5000, (300,)).cuda()
    second = torch.randint(0, 5000, (500,)).cuda()
    (layer(table(first)).sum() + layer(table(second)).sum()).backward()
    sparse.step()
    dense.step()
    sparse.zero_grad()
    dense.zero_grad()
