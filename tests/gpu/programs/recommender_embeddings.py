# SPDX-License-Identifier: Apache-2.0
"""A recommender: big dense-gradient embeddings, bags of history, crossed features (DLRM-like), Adagrad."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
ROWS = [2000, 800, 300, 50] if SMALL else [3_000_000, 1_200_000, 400_000, 60_000, 9_000, 700, 50]
torch.manual_seed(0)
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=16384)
parser.add_argument("--dim", type=int, default=64)
args = parser.parse_args()


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class DLRM(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, dim, sparse=False) for n in ROWS)
        self.history = nn.EmbeddingBag(ROWS[1], dim, mode="mean")
        self.bottom = mlp(13, 512, 256, dim)
        n = len(ROWS) + 2
        self.register_buffer("pairs", torch.tril_indices(n, n, -1))
        self.top = mlp(dim + self.pairs.shape[1], 1024, 1024, 512, 1)
        for table in self.tables:
            nn.init.uniform_(table.weight, -0.01, 0.01)

    def forward(self, dense, sparse, clicks, offsets):
        d = self.bottom(dense)
        vectors = [d] + [table(sparse[:, i]) for i, table in enumerate(self.tables)] + [self.history(clicks, offsets)]
        t = torch.stack(vectors, 1)
        cross = torch.bmm(t, t.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([d, cross], 1)).squeeze(1)


model = DLRM(args.dim).cuda()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
positive = torch.tensor(3.0).cuda()
for step in range(5):
    dense = torch.rand(args.batch_size, 13).log1p()
    sparse = torch.stack([torch.randint(0, n, (args.batch_size,)) for n in ROWS], 1)
    clicks, offsets = torch.randint(0, ROWS[1], (args.batch_size * 20,)), torch.arange(0, args.batch_size * 20, 20)
    label = (torch.rand(args.batch_size) < 0.25).float()
    out = model(dense.cuda(non_blocking=True), sparse.cuda(), clicks.cuda(), offsets.cuda())
    loss = F.binary_cross_entropy_with_logits(out, label.cuda(), pos_weight=positive)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{step} {loss.item():.4f}")

if torch.cuda.is_available():
    s = torch.cuda.memory_stats()
    print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
