# SPDX-License-Identifier: Apache-2.0
"""Image classification, the plain loop: loader with workers, pinned memory, validation after every epoch."""
import argparse
import os
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset
from torchvision import models, transforms

SMALL = os.environ.get("SMALL") == "1"
torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"


class Folder(Dataset):
    """Stands for an image folder: noise, then the usual transforms."""

    def __init__(self, n, size, train):
        self.n, self.size = n, size
        steps = [transforms.RandomResizedCrop(size, antialias=True), transforms.RandomHorizontalFlip()] if train else [transforms.Resize(size + 16, antialias=True), transforms.CenterCrop(size)]
        self.transform = transforms.Compose(steps + [transforms.Normalize([0.5] * 3, [0.25] * 3)])

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        image = torch.rand(3, self.size + 40, self.size + 20, generator=torch.Generator().manual_seed(i))
        return self.transform(image), i % 200


def train_epoch(model, loader, criterion, optimizer, scheduler):
    model.train()
    total, right, seen = 0.0, 0, 0
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        optimizer.zero_grad()
        out = model(x)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item() * len(x)
        right += (out.argmax(1) == y).sum().item()
        seen += len(x)
    return total / seen, right / seen


@torch.no_grad()
def validate(model, loader, criterion):
    model.eval()
    losses, right, seen = [], 0, 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        out = model(x)
        losses.append(criterion(out, y))
        right += (out.topk(5)[1] == y[:, None]).any(1).sum().item()
        seen += len(x)
    return torch.stack(losses).mean().item(), right / seen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    size = 64 if SMALL else 260
    train = DataLoader(Folder(args.batch_size * 3, size, True), args.batch_size, shuffle=True, num_workers=4, pin_memory=torch.cuda.is_available(), drop_last=True)
    valid = DataLoader(Folder(args.batch_size * 5, size, False), args.batch_size * 2, num_workers=2)
    model = models.efficientnet_b2(weights=None, num_classes=200).to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.02)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=args.epochs * len(train) + 1)
    for epoch in range(args.epochs):
        start = time.time()
        loss, accuracy = train_epoch(model, train, criterion, optimizer, scheduler)
        print(f"{epoch}: train {loss:.3f} {accuracy:.3f}, valid {validate(model, valid, criterion)}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
