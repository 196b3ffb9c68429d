# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs that come and go, and twenty that live at once."""

import torch

static = torch.zeros(16, 64, device="cuda")


def captured(pool=None):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        result = static.exp()
    graph.replay()
    return graph, result


for _ in range(40):
    graph, result = captured()
    graph.reset()
graph, result = captured()
del graph
shared = torch.cuda.graph_pool_handle()
pair = [captured(shared), captured(shared)]
pair.pop()
many = [captured() for _ in range(20)]
print(static.cosh().shape)
