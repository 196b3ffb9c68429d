# SPDX-License-Identifier: Apache-2.0
"""Three steps on another stream, then one that is captured in a CUDA graph, as PyTorch's notes on
CUDA graphs have it; replays; an evaluation."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)).cuda()
optimizer = torch.optim.Adam(model.parameters(), capturable=True)
loader = DataLoader(TensorDataset(torch.ones(512, 64)), batch_size=16)
static = torch.zeros(16, 64, device="cuda")
side, graph = torch.cuda.Stream(), None


def train_step():
    optimizer.zero_grad(set_to_none=True)
    model(static).sum().backward()
    optimizer.step()


for number, (batch,) in enumerate(loader):
    static.copy_(batch)
    if number < 3:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            train_step()
        torch.cuda.current_stream().wait_stream(side)
        continue
    if graph is None:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            train_step()
    graph.replay()
model.eval()
with torch.no_grad():
    model(torch.ones(2048, 64, device="cuda"))
