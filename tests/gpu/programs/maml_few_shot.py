# SPDX-License-Identifier: Apache-2.0
"""MAML: an inner loop of three steps with second-order gradients (create_graph), functional weights, an outer Adam. --batch-size: tasks."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
WAYS, SHOTS, QUERIES = 5, 5, 10


def block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(8, b), nn.ReLU(), nn.MaxPool2d(2))


class ConvNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(block(3, width), block(width, width), block(width, width), block(width, width))
        self.head = nn.Linear(width * 25, WAYS)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


def adapt(model, params, x, y, lr=0.05, steps=3):
    for _ in range(steps):
        loss = F.cross_entropy(functional_call(model, params, (x,)), y)
        grads = torch.autograd.grad(loss, params.values(), create_graph=True)
        params = {name: p - lr * g for (name, p), g in zip(params.items(), grads)}
    return params


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = ConvNet(16 if SMALL else 64).to(device)
    outer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for iteration in range(5):
        total = 0.0
        for task in range(args.batch_size):
            support, query = torch.randn(WAYS * SHOTS, 3, 84, 84).to(device), torch.randn(WAYS * QUERIES, 3, 84, 84).to(device)
            ys = torch.arange(WAYS, device=device).repeat_interleave(SHOTS)
            yq = torch.arange(WAYS, device=device).repeat_interleave(QUERIES)
            fast = adapt(model, dict(model.named_parameters()), support, ys)
            logits = functional_call(model, fast, (query,))
            total = total + F.cross_entropy(logits, yq)
        loss = total / args.batch_size
        outer.zero_grad()
        loss.backward()
        outer.step()
        print(iteration, loss.item(), (logits.argmax(1) == yq).float().mean().item())


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
