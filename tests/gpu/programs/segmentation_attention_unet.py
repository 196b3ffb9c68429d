# SPDX-License-Identifier: Apache-2.0
"""Segmentation with an attention U-Net, Dice plus cross-entropy, intersection over union in the validation; fp32, channels_last."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
CLASSES = 12


def double(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True),
                         nn.Conv2d(b, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True))


class Gate(nn.Module):
    def __init__(self, c, inner):
        super().__init__()
        self.g, self.x = nn.Sequential(nn.Conv2d(c, inner, 1), nn.BatchNorm2d(inner)), nn.Sequential(nn.Conv2d(c, inner, 1), nn.BatchNorm2d(inner))
        self.psi = nn.Sequential(nn.Conv2d(inner, 1, 1), nn.BatchNorm2d(1), nn.Sigmoid())

    def forward(self, g, x):
        return x * self.psi(F.relu(self.g(g) + self.x(x), inplace=True))


class AttUNet(nn.Module):
    def __init__(self, widths=(48, 96, 192, 384, 768)):
        super().__init__()
        self.enc = nn.ModuleList(double(a, b) for a, b in zip((3,) + widths, widths))
        self.up = nn.ModuleList(nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), nn.Conv2d(b, a, 3, padding=1)) for a, b in zip(widths, widths[1:]))
        self.gate = nn.ModuleList(Gate(a, a // 2) for a in widths[:-1])
        self.dec = nn.ModuleList(double(2 * a, a) for a in widths[:-1])
        self.out = nn.Conv2d(widths[0], CLASSES, 1)

    def forward(self, x):
        skips = []
        for i, block in enumerate(self.enc):
            x = block(F.max_pool2d(x, 2) if i else x)
            skips.append(x)
        skips.pop()
        for i in reversed(range(len(self.up))):
            g = self.up[i](x)
            x = self.dec[i](torch.cat([self.gate[i](g, skips[i]), g], 1))
        return self.out(x)


def dice(logits, y):
    p, t = logits.softmax(1), F.one_hot(y, CLASSES).permute(0, 3, 1, 2).float()
    inter = (p * t).sum((0, 2, 3))
    return 1 - (2 * inter / (p.sum((0, 2, 3)) + t.sum((0, 2, 3)) + 1e-6)).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    args = parser.parse_args()
    torch.manual_seed(0)
    h, w = (64, 80) if SMALL else (336, 464)
    model = AttUNet((8, 16, 32, 64, 128) if SMALL else (48, 96, 192, 384, 768)).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
    n = args.batch_size
    for epoch in range(2):
        model.train()
        for _ in range(3):
            x = torch.randn(n, 3, h, w).to(device, memory_format=torch.channels_last)
            y = torch.randint(0, CLASSES, (n, h, w), device=device)
            if epoch % 2:
                x, y = x.flip(-1), y.flip(-1)
            logits = model(x)
            loss = F.cross_entropy(logits, y) + dice(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            confusion = torch.zeros(CLASSES * CLASSES, device=device)
            for _ in range(2):
                x, y = torch.randn(2 * n, 3, h, w, device=device), torch.randint(0, CLASSES, (2 * n, h, w), device=device)
                pred = model(x).argmax(1)
                confusion += torch.bincount((y * CLASSES + pred).flatten(), minlength=CLASSES ** 2).float()
            c = confusion.view(CLASSES, CLASSES)
            print(epoch, loss.item(), (c.diag() / (c.sum(0) + c.sum(1) - c.diag() + 1e-6)).mean().item())


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
