# SPDX-License-Identifier: Apache-2.0
"""Action recognition: torchvision's R(2+1)D, fp16 with GradScaler, accumulation, a frozen stem."""
import argparse
import os

import torch
import torch.nn as nn
from torch.cuda.amp import GradScaler
from torchvision.models.video import r2plus1d_18

SMALL = os.environ.get("SMALL") == "1"
torch.manual_seed(0)


class Clips(torch.utils.data.Dataset):
    def __init__(self, n, frames, size):
        self.n, self.shape = n, (3, frames, size, size)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        clip = torch.randint(0, 256, self.shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(i))
        return clip, i % 101


parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--accumulate", type=int, default=2)
args = parser.parse_args()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
cuda = device.type == "cuda"
frames, size = (4, 32) if SMALL else (16, 128)

model = r2plus1d_18(num_classes=101)
for p in model.stem.parameters():
    p.requires_grad = False
model = model.to(device)
optimizer = torch.optim.SGD([{"params": model.fc.parameters(), "lr": 0.1}, {"params": [p for n, p in model.named_parameters() if p.requires_grad and not n.startswith("fc")]}], lr=0.01, momentum=0.9)
criterion = nn.CrossEntropyLoss().to(device)
scaler = GradScaler(enabled=cuda)
loader = torch.utils.data.DataLoader(Clips(args.batch_size * 8, frames, size), args.batch_size, shuffle=True, num_workers=2, pin_memory=cuda)
model.train()
optimizer.zero_grad()
for i, (clip, label) in enumerate(loader):
    clip, label = clip.to(device, non_blocking=True), label.to(device, non_blocking=True)
    clip = clip.float().div(255).sub(0.45).div(0.225)
    with torch.autocast(device.type, torch.float16, enabled=cuda):
        loss = criterion(model(clip), label) / args.accumulate
    scaler.scale(loss).backward()
    if (i + 1) % args.accumulate == 0:
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        print(i, loss.item() * args.accumulate)

if torch.cuda.is_available():
    s = torch.cuda.memory_stats()
    print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
