# SPDX-License-Identifier: Apache-2.0
"""GraphSAGE with sampled neighbours in training and the whole graph in evaluation. Written without PyG."""
import argparse
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"


class Graph:
    def __init__(self, nodes, degree, feats, classes):
        rng = np.random.default_rng(0)
        deg = rng.poisson(degree, nodes) + 1
        self.indptr = np.concatenate([[0], np.cumsum(deg)])
        self.indices = rng.integers(0, nodes, self.indptr[-1])
        self.x = torch.randn(nodes, feats)
        self.y = torch.randint(0, classes, (nodes,))
        mask = torch.rand(nodes)
        self.train, self.val, self.test = mask < 0.6, (mask >= 0.6) & (mask < 0.8), mask >= 0.8
        self.dst = torch.from_numpy(np.repeat(np.arange(nodes), deg))
        self.src = torch.from_numpy(self.indices)
        self.degree = torch.from_numpy(deg).float()

    def neighbours(self, ids, fanout):
        start, deg = self.indptr[ids], self.indptr[ids + 1] - self.indptr[ids]
        pick = (np.random.rand(len(ids), fanout) * deg[:, None]).astype(np.int64)
        return self.indices[start[:, None] + pick]


class Sampler:
    def __init__(self, graph, fanouts):
        self.graph, self.fanouts = graph, fanouts

    def __call__(self, seeds):
        layers = [np.asarray(seeds)]
        for f in self.fanouts:
            flat = layers[-1].reshape(-1)
            layers.append(self.graph.neighbours(flat, f).reshape(-1))
        return [torch.from_numpy(l) for l in layers]


class SAGE(nn.Module):
    def __init__(self, feats, hidden, classes):
        super().__init__()
        self.self1, self.neigh1 = nn.Linear(feats, hidden), nn.Linear(feats, hidden, bias=False)
        self.self2, self.neigh2 = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm1d(hidden), nn.BatchNorm1d(hidden)
        self.out = nn.Linear(hidden, classes)

    def sampled(self, x0, x1, x2, f1, f2):
        n1 = x1.view(len(x0), f1, -1)
        h0 = self.self1(x0) + self.neigh1(n1.mean(1))
        h1 = self.self1(x1) + self.neigh1(x2.view(len(x1), f2, -1).mean(1))
        h0, h1 = F.dropout(F.relu(self.bn1(h0)), 0.5, self.training), F.dropout(F.relu(self.bn1(h1)), 0.5, self.training)
        h = self.self2(h0) + self.neigh2(h1.view(len(x0), f1, -1).mean(1))
        return self.out(F.relu(self.bn2(h)))

    def full(self, x, src, dst, degree):
        def mean(h):
            return torch.zeros_like(h).index_add_(0, dst, h[src]) / degree[:, None]
        h = F.relu(self.bn1(self.self1(x) + self.neigh1(mean(x))))
        h = F.relu(self.bn2(self.self2(h) + self.neigh2(mean(h))))
        return self.out(h)


parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=2048)
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()
torch.manual_seed(0)
np.random.seed(0)
nodes, degree, feats, hidden, classes = (500, 5, 16, 16, 7) if SMALL else (180_000, 20, 128, 256, 47)
f1, f2 = (3, 3) if SMALL else (15, 10)
bs = 32 if SMALL else args.batch_size
graph = Graph(nodes, degree, feats, classes)
loader = DataLoader(graph.train.nonzero().squeeze(1).numpy()[: bs * 8], batch_size=bs, shuffle=True, collate_fn=Sampler(graph, (f1, f2)))
model = SAGE(feats, hidden, classes).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=5e-4)

x, y = graph.x.to(device), graph.y.to(device)
src, dst, deg = graph.src.to(device), graph.dst.to(device), graph.degree.to(device)
best_val = best_test = 0.0
for epoch in range(args.epochs):
    model.train()
    for a, b, c in loader:
        a, b, c = a.to(device), b.to(device), c.to(device)
        out = model.sampled(x[a], x[b], x[c], f1, f2)
        loss = F.cross_entropy(out, y[a])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        pred = model.full(x, src, dst, deg).argmax(-1)
        accs = [(pred[m.to(device)] == y[m.to(device)]).float().mean().item() for m in (graph.train, graph.val, graph.test)]
    if accs[1] > best_val:
        best_val, best_test = accs[1], accs[2]
    print(f"Epoch {epoch:02d} loss {loss.item():.4f} train {accs[0]:.4f} val {accs[1]:.4f} test {accs[2]:.4f} best {best_test:.4f}")

if torch.cuda.is_available():
    s = torch.cuda.memory_stats()
    print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
