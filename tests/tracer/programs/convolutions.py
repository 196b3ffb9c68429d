# SPDX-License-Identifier: Apache-2.0
"""Convolutions in both memory formats, one channel per group, transposed, in three dimensions;
norms and pools."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 32, 3, 2, 1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
        )
        self.deep = nn.Sequential(
            nn.Conv2d(32, 32, 3, padding=1, groups=32),
            nn.GroupNorm(4, 32),
            nn.Hardswish(),
            nn.Conv2d(32, 64, 1),
        )
        self.up = nn.ConvTranspose2d(64, 16, 2, 2)
        self.volume = nn.Conv3d(16, 8, 3, padding=1)
        self.line = nn.Conv1d(8, 8, 5, dilation=2)
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        x = self.up(self.deep(self.stem(x)))
        x = self.volume(x.unsqueeze(2)).squeeze(2)
        x = nn.functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        x = self.line(nn.functional.adaptive_avg_pool2d(x, (1, 64)).squeeze(2))
        return self.head(x.mean(-1))


for memory_format in (torch.contiguous_format, torch.channels_last):
    model = Net().cuda()
    for part in (model.stem, model.deep, model.up):
        part.to(memory_format=memory_format)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    for _ in range(2):
        images = torch.randn(8, 3, 64, 64).to("cuda", memory_format=memory_format)
        target = torch.randint(0, 10, (8,), device="cuda")
        criterion(model(images), target).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
