# SPDX-License-Identifier: Apache-2.0
"""Sparse matrices: their product with a dense one, coalesced on the way."""

import torch
from torch import nn

places = torch.randint(0, 500, (2, 4000))
graph = torch.sparse_coo_tensor(places, torch.rand(4000), (500, 500)).cuda()
layers = nn.ModuleList([nn.Linear(64, 128), nn.Linear(128, 16)]).cuda()
optimizer = torch.optim.Adam(layers.parameters())
features = torch.randn(500, 64).cuda()
for _ in range(3):
    x = torch.sparse.mm(graph, layers[0](features)).relu()
    x = torch.spmm(graph.coalesce(), layers[1](x))
    x.logsumexp(-1).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
