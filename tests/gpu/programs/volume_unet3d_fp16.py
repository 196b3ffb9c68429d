# SPDX-License-Identifier: Apache-2.0
"""3D U-Net for medical volumes: instance norm, deep supervision, fp16 with GradScaler."""
import argparse
import os

import torch
from torch import nn
from torch.nn import functional as F

SMALL = os.environ.get("SMALL") == "1"


def conv(a, b, stride=1):
    return nn.Sequential(nn.Conv3d(a, b, 3, stride, 1, bias=False), nn.InstanceNorm3d(b, affine=True), nn.LeakyReLU(0.01, inplace=True))


class Net(nn.Module):
    def __init__(self, channels=4, classes=4, widths=(32, 64, 128, 256, 320)):
        super().__init__()
        self.down = nn.ModuleList()
        last = channels
        for i, w in enumerate(widths):
            self.down.append(nn.Sequential(conv(last, w, 1 if i == 0 else 2), conv(w, w)))
            last = w
        self.up = nn.ModuleList([nn.ConvTranspose3d(b, a, 2, 2) for a, b in zip(widths, widths[1:])])
        self.merge = nn.ModuleList([nn.Sequential(conv(2 * a, a), conv(a, a)) for a in widths[:-1]])
        self.heads = nn.ModuleList([nn.Conv3d(a, classes, 1) for a in widths[:-1]])

    def forward(self, x):
        skips = []
        for block in self.down:
            x = block(x)
            skips.append(x)
        x = skips.pop()
        outs = []
        for i in range(len(self.up) - 1, -1, -1):
            x = self.merge[i](torch.cat((self.up[i](x), skips[i]), 1))
            outs.append(self.heads[i](x))
        return outs[::-1]


def loss_of(outs, y):
    total, weight = 0.0, 1.0
    for out in outs[:3]:
        t = F.interpolate(y[:, None].float(), size=out.shape[2:], mode="nearest").squeeze(1).long()
        p = out.float().softmax(1)
        one = torch.zeros_like(p).scatter_(1, t[:, None], 1)
        overlap = 1 - ((2 * (p * one).sum((2, 3, 4)) + 1) / (p.sum((2, 3, 4)) + one.sum((2, 3, 4)) + 1)).mean()
        total = total + weight * (F.cross_entropy(out, t) + overlap)
        weight /= 2
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape = (32, 32, 16) if SMALL else (128, 128, 96)
    model = Net(widths=(8, 16, 16, 16, 16) if SMALL else (32, 64, 128, 256, 320)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.99, nesterov=True, weight_decay=3e-5)
    scaler = torch.amp.GradScaler(device, enabled=device == "cuda")
    for step in range(5):
        x = torch.randn(args.batch_size, 4, *shape).to(device)
        y = torch.randint(0, 4, (args.batch_size, *shape)).to(device)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=torch.float16, enabled=device == "cuda"):
            loss = loss_of(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 12)
        scaler.step(optimizer)
        scaler.update()
        print(step, loss.item())


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
