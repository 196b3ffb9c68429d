# SPDX-License-Identifier: Apache-2.0
"""Finds a learning rate (state kept aside, then put back), then trains a few steps; torchvision DenseNet-121 at 200 pixels."""
import argparse
import copy
import os

import torch
import torch.nn as nn
from torchvision.models import densenet121

SMALL = os.environ.get("SMALL") == "1"
torch.manual_seed(0)


class LRFinder:
    def __init__(self, model, optimizer, criterion, device):
        self.model, self.optimizer, self.criterion, self.device = model, optimizer, criterion, device
        self.kept = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())
        self.rates, self.losses = [], []

    def range_test(self, batches, low, high, n):
        factor = (high / low) ** (1 / max(n - 1, 1))
        rate, best = low, None
        for i in range(n):
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            x, y = next(batches)
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x.to(self.device)), y.to(self.device))
            loss.backward()
            self.optimizer.step()
            self.rates.append(rate)
            self.losses.append(loss.item() if best is None else 0.95 * self.losses[-1] + 0.05 * loss.item())
            best = min(self.losses)
            rate *= factor

    def reset(self):
        self.model.load_state_dict(self.kept[0])
        self.optimizer.load_state_dict(self.kept[1])

    def suggestion(self):
        slopes = [b - a for a, b in zip(self.losses, self.losses[1:])]
        return self.rates[slopes.index(min(slopes))]


def batches(n, size):
    while True:
        yield torch.randn(n, 3, size, size), torch.randint(0, 50, (n,))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=36)
    args = parser.parse_args()
    device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
    model = densenet121(num_classes=50, drop_rate=0.1).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-7, weight_decay=1e-4)
    criterion = nn.CrossEntropyLoss()
    data = batches(args.batch_size, 64 if SMALL else 200)
    finder = LRFinder(model, optimizer, criterion, device)
    finder.range_test(data, 1e-6, 1e-1, 3)
    rate = finder.suggestion()
    finder.reset()
    for group in optimizer.param_groups:
        group["lr"] = rate
    for step in range(3):
        x, y = next(data)
        loss = criterion(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, rate, loss.item())


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
