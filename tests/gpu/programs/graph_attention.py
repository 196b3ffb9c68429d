# SPDX-License-Identifier: Apache-2.0
"""Graph attention over a batch of random graphs: scatter softmax with scatter_reduce and index_add, pooling per graph."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"


class GAT(nn.Module):
    def __init__(self, a, b, heads, edge):
        super().__init__()
        self.heads, self.dim = heads, b // heads
        self.source, self.target, self.edge = nn.Linear(a, b), nn.Linear(a, b), nn.Linear(edge, b, bias=False)
        self.score = nn.Parameter(torch.randn(heads, self.dim) * 0.1)
        self.norm = nn.BatchNorm1d(b)
        self.skip = nn.Linear(a, b) if a != b else nn.Identity()

    def forward(self, x, edges, attributes):
        i, j = edges
        s, t = self.source(x).view(-1, self.heads, self.dim), self.target(x).view(-1, self.heads, self.dim)
        message = s[i]
        e = (F.leaky_relu(message + t[j] + self.edge(attributes).view(-1, self.heads, self.dim), 0.2) * self.score).sum(-1)
        index = j[:, None].expand_as(e)
        top = torch.full((len(x), self.heads), -1e9, device=x.device).scatter_reduce(0, index, e.detach(), "amax")
        a = (e - top[j]).exp()
        total = torch.zeros(len(x), self.heads, device=x.device).index_add(0, j, a)
        a = F.dropout(a / (total[j] + 1e-9), 0.1, self.training)
        out = torch.zeros(len(x), self.heads, self.dim, device=x.device).index_add(0, j, message * a[..., None])
        return F.elu(self.norm(out.flatten(1)) + self.skip(x))


class Net(nn.Module):
    def __init__(self, features=32, width=256, edge=16, layers=4, out=12):
        super().__init__()
        self.layers = nn.ModuleList(GAT(features if k == 0 else width, width, 8, edge) for k in range(layers))
        self.out = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, out))

    def forward(self, x, edges, attributes, graph, n):
        for layer in self.layers:
            x = layer(x, edges, attributes)
        total = x.new_zeros(n, x.shape[1]).index_add_(0, graph, x)
        count = torch.bincount(graph, minlength=n)[:, None]
        top = x.new_full((n, x.shape[1]), -1e9).scatter_reduce(0, graph[:, None].expand_as(x), x, "amax")
        return self.out(torch.cat([total / count, top], 1))


def make(n, nodes, degree):
    """n graphs in one, `nodes` each, `degree` edges a node."""
    graph = torch.arange(n).repeat_interleave(nodes)
    j = torch.arange(n * nodes).repeat_interleave(degree)
    i = torch.randint(0, nodes, (len(j),)) + graph[j] * nodes
    return torch.randn(n * nodes, 32), torch.stack([i, j]), torch.randn(len(j), 16), graph, torch.randn(n, 12)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=192)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Net(width=32 if SMALL else 256).to(device)
    optimizer = torch.optim.Adamax(model.parameters(), lr=1e-3)
    for step in range(6):
        x, edges, attributes, graph, y = (z.to(device) for z in make(args.batch_size, 10 if SMALL else 110, 8))
        loss = F.smooth_l1_loss(model(x, edges, attributes, graph, args.batch_size), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
