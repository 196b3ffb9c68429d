# SPDX-License-Identifier: Apache-2.0
"""Sharpness-aware minimization: two passes a step, a WideResNet on 32x32 images, cutout on the GPU."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base = base(self.param_groups, **kwargs)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def first_step(self):
        norm = torch.norm(torch.stack([p.grad.norm(2) for g in self.param_groups for p in g["params"] if p.grad is not None]), 2)
        for group in self.param_groups:
            scale = group["rho"] / (norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["old"] = p.data.clone()
                p.add_(p.grad * scale)
        self.zero_grad()

    @torch.no_grad()
    def second_step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.data = self.state[p]["old"]
        self.base.step()
        self.zero_grad()


class Basic(nn.Module):
    def __init__(self, a, b, stride, drop):
        super().__init__()
        self.bn1, self.c1 = nn.BatchNorm2d(a), nn.Conv2d(a, b, 3, stride, 1, bias=False)
        self.bn2, self.c2 = nn.BatchNorm2d(b), nn.Conv2d(b, b, 3, 1, 1, bias=False)
        self.short = nn.Conv2d(a, b, 1, stride, bias=False) if a != b or stride > 1 else None
        self.drop = drop

    def forward(self, x):
        h = F.relu(self.bn1(x))
        skip = self.short(h) if self.short is not None else x
        h = F.dropout(F.relu(self.bn2(self.c1(h))), self.drop, self.training)
        return skip + self.c2(h)


def wide_resnet(depth=28, k=10, classes=100):
    n, widths = (depth - 4) // 6, [16, 16 * k, 32 * k, 64 * k]
    layers = [nn.Conv2d(3, 16, 3, padding=1, bias=False)]
    for s in range(3):
        layers += [Basic(widths[s] if i == 0 else widths[s + 1], widths[s + 1], (1 if s == 0 else 2) if i == 0 else 1, 0.1) for i in range(n)]
    return nn.Sequential(*layers, nn.BatchNorm2d(widths[3]), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[3], classes))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=128)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = wide_resnet(10, 1).to(device) if SMALL else wide_resnet(22, 8).to(device)
    optimizer = SAM(model.parameters(), torch.optim.SGD, rho=0.1, lr=0.1, momentum=0.9, weight_decay=5e-4)
    for step in range(5):
        x = torch.randn(args.batch_size, 3, 32, 32).to(device)
        x[:, :, 8:16, 12:20] = 0
        y = torch.randint(0, 100, (args.batch_size,), device=device)
        loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
        loss.backward()
        optimizer.first_step()
        F.cross_entropy(model(x), y, label_smoothing=0.1).backward()
        optimizer.second_step()
        print(step, loss.item())


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
