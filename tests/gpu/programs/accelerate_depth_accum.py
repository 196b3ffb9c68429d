# SPDX-License-Identifier: Apache-2.0
"""Monocular depth: a timm backbone's features, an FPN head; accelerate with gradient accumulation (fp32)."""
import argparse
import os

import timm
import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator

SMALL = os.environ.get("SMALL") == "1"
torch.manual_seed(0)
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=8)
args = parser.parse_args()


class DepthNet(nn.Module):
    def __init__(self, name, width=128):
        super().__init__()
        self.body = timm.create_model(name, features_only=True, out_indices=(1, 2, 3, 4))
        self.lateral = nn.ModuleList([nn.Conv2d(c, width, 1) for c in self.body.feature_info.channels()])
        self.smooth = nn.ModuleList([nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)) for _ in self.lateral])
        self.head = nn.Sequential(nn.Conv2d(width, 64, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(64, 1, 1), nn.Softplus())

    def forward(self, x):
        features = self.body(x)
        y = None
        for feature, lateral, smooth in reversed(list(zip(features, self.lateral, self.smooth))):
            z = lateral(feature)
            if y is not None:
                z = z + F.interpolate(y, size=z.shape[-2:], mode="bilinear", align_corners=False)
            y = smooth(z)
        return F.interpolate(self.head(y), size=x.shape[-2:], mode="bilinear", align_corners=False)


def silog(pred, target, mask):
    d = (pred.clamp(min=1e-3).log() - target.log()) * mask
    n = mask.sum()
    return (d.pow(2).sum() / n - 0.85 * (d.sum() / n).pow(2)).clamp(min=1e-6).sqrt()


height, width = (64, 96) if SMALL else (352, 608)
accelerator = Accelerator(gradient_accumulation_steps=3)
model = DepthNet("resnet18d" if SMALL else "regnetx_032")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
data = torch.utils.data.TensorDataset(torch.randn(args.batch_size * 6, 3, height, width), torch.rand(args.batch_size * 6, 1, height, width) * 10 + 0.1)
loader = torch.utils.data.DataLoader(data, batch_size=args.batch_size, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for epoch in range(2):
    for image, depth in loader:
        with accelerator.accumulate(model):
            mask = (depth < 9.5).float()
            loss = silog(model(image), depth, mask)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    accelerator.print(epoch, float(loss))

if torch.cuda.is_available():
    s = torch.cuda.memory_stats()
    print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
