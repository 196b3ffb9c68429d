# SPDX-License-Identifier: Apache-2.0
"""Metric learning: a shared network on anchor, positive and negative, plus an in-batch hardest-negative loss over all pairs."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision.models import mobilenet_v3_large, resnet18

SMALL = os.environ.get("SMALL") == "1"
torch.manual_seed(0)


class Triplets(torch.utils.data.Dataset):
    def __init__(self, n, size):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        a = torch.rand(3, self.size, self.size, generator=g)
        return a, (a + 0.1 * torch.rand(3, self.size, self.size, generator=g)).clamp(max=1), torch.rand(3, self.size, self.size, generator=g)


class Embedder(nn.Module):
    def __init__(self, out=256):
        super().__init__()
        net = resnet18() if SMALL else mobilenet_v3_large(width_mult=1.25)
        self.body = nn.Sequential(*list(net.children())[:-1])
        self.head = nn.Sequential(nn.Flatten(), nn.LazyLinear(512), nn.BatchNorm1d(512), nn.PReLU(), nn.Linear(512, out))

    def forward(self, x):
        return F.normalize(self.head(self.body(x)), dim=1)


def hardest(a, p, margin=0.3):
    d = torch.cdist(a, p)
    same = torch.eye(len(a), dtype=torch.bool, device=a.device)
    negative = d.masked_fill(same, 10.0).min(1)[0]
    return F.relu(d.diagonal() - negative + margin).mean()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=40)
    args = ap.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    size = 64 if SMALL else 192
    model = Embedder().to(device)
    model.eval()
    model(torch.zeros(1, 3, size, size, device=device))
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, weight_decay=1e-5)
    triplet = nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: 1 - F.cosine_similarity(a, b), margin=0.4)
    loader = torch.utils.data.DataLoader(Triplets(args.batch_size * 5, size), args.batch_size, num_workers=3, drop_last=True)
    for step, (a, p, n) in enumerate(loader):
        a, p, n = a.to(device), p.to(device), n.to(device)
        za, zp, zn = model(a), model(p), model(n)
        loss = triplet(za, zp, zn) + 0.5 * hardest(za, zp)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
