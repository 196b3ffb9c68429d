# SPDX-License-Identifier: Apache-2.0
"""Binary building segmentation: FPN on timm ResNet-50d features, Dice + BCE, fp16 GradScaler, validation loss and IoU per epoch to CSV."""
import argparse
import csv
import os
import tempfile

import timm
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SMALL = bool(int(os.environ.get("SMALL", "0")))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Tiles(Dataset):
    """Aerial tiles: textured ground with bright rectangles."""

    def __init__(self, n, size, seed=0):
        self.n, self.size, self.seed = n, size, seed

    def __len__(self):
        return self.n

    def __getitem__(self, idx):
        g = torch.Generator().manual_seed(self.seed * 100003 + idx)
        img = 0.3 * torch.randn(3, self.size, self.size, generator=g)
        mask = torch.zeros(1, self.size, self.size)
        for _ in range(int(torch.randint(2, 9, (1,), generator=g))):
            y, x = torch.randint(0, self.size - self.size // 6, (2,), generator=g).tolist()
            h, w = torch.randint(4, self.size // 6, (2,), generator=g).tolist()
            img[:, y:y + h, x:x + w] += 1.0
            mask[:, y:y + h, x:x + w] = 1
        return img, mask


class ConvGNReLU(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.GroupNorm(32, cout), nn.ReLU(inplace=True))


class FPN(nn.Module):
    def __init__(self, backbone, pyramid=256, seg=128):
        super().__init__()
        self.encoder = timm.create_model(backbone, features_only=True, pretrained=False, out_indices=(1, 2, 3, 4))
        chans = self.encoder.feature_info.channels()
        self.lateral = nn.ModuleList([nn.Conv2d(c, pyramid, 1) for c in chans])
        self.towers = nn.ModuleList()
        for i in range(4):
            blocks = [ConvGNReLU(pyramid, seg)]
            for k in range(i):
                blocks.append(nn.Upsample(scale_factor=2, mode="bilinear"))
                if k < i - 1:
                    blocks.append(ConvGNReLU(seg, seg))
            self.towers.append(nn.Sequential(*blocks))
        self.drop = nn.Dropout2d(0.2)
        self.head = nn.Conv2d(seg, 1, 1)

    def forward(self, x):
        feats = [l(f) for l, f in zip(self.lateral, self.encoder(x))]
        for i in range(2, -1, -1):
            feats[i] = feats[i] + F.interpolate(feats[i + 1], scale_factor=2, mode="nearest")
        merged = sum(t(f) for t, f in zip(self.towers, feats))
        return F.interpolate(self.head(self.drop(merged)), scale_factor=4, mode="bilinear")


class DiceBCE(nn.Module):
    def forward(self, logits, target):
        bce = F.binary_cross_entropy_with_logits(logits, target)
        p = torch.sigmoid(logits.float())
        inter = (p * target).sum((1, 2, 3))
        dice = 1 - (2 * inter + 1) / (p.sum((1, 2, 3)) + target.sum((1, 2, 3)) + 1)
        return bce + dice.mean()


def run_validation(net, loader, criterion):
    net.eval()
    total, inter, union, n = 0.0, 0.0, 0.0, 0
    with torch.no_grad():
        for img, mask in loader:
            img, mask = img.to(DEVICE), mask.to(DEVICE)
            with torch.amp.autocast(DEVICE, dtype=torch.float16, enabled=DEVICE == "cuda"):
                logits = net(img)
                total += criterion(logits, mask).item() * len(img)
            pred = logits > 0
            truth = mask > 0.5
            inter += (pred & truth).sum().item()
            union += (pred | truth).sum().item()
            n += len(img)
    return total / n, inter / max(union, 1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=16)
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--lr", type=float, default=1e-3)
    opt = ap.parse_args()
    torch.manual_seed(7)
    if SMALL:
        opt.batch_size = min(opt.batch_size, 2)
    size = 64 if SMALL else 512
    workers = 0 if SMALL else 8
    train_dl = DataLoader(Tiles(opt.batch_size * (2 if SMALL else 7), size), opt.batch_size, shuffle=True, drop_last=True, num_workers=workers)
    val_dl = DataLoader(Tiles(opt.batch_size * 2 + 1, size, seed=1), opt.batch_size, num_workers=workers)
    net = FPN("resnet18d" if SMALL else "resnet50d").to(DEVICE)
    params = [{"params": net.encoder.parameters(), "lr": opt.lr * 0.1}, {"params": [p for n, p in net.named_parameters() if not n.startswith("encoder")]}]
    optimizer = torch.optim.AdamW(params, lr=opt.lr, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=[opt.lr * 0.1, opt.lr], total_steps=opt.epochs * len(train_dl))
    scaler = torch.amp.GradScaler(DEVICE, enabled=DEVICE == "cuda")
    criterion = DiceBCE()
    folder = tempfile.mkdtemp()
    with open(os.path.join(folder, "log.csv"), "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["epoch", "train_loss", "val_loss", "iou"])
        best = 0
        for epoch in range(opt.epochs):
            net.train()
            run = 0.0
            for img, mask in train_dl:
                img, mask = img.to(DEVICE), mask.to(DEVICE)
                optimizer.zero_grad(set_to_none=True)
                with torch.amp.autocast(DEVICE, dtype=torch.float16, enabled=DEVICE == "cuda"):
                    loss = criterion(net(img), mask)
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
                scheduler.step()
                run += loss.item()
            vl, iou = run_validation(net, val_dl, criterion)
            writer.writerow([epoch, run / len(train_dl), vl, iou])
            print(f"epoch {epoch} train {run / len(train_dl):.4f} val {vl:.4f} IoU {iou:.4f}")
            if iou >= best:
                best = iou
                torch.save(net.state_dict(), os.path.join(folder, "fpn_best.pt"))


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
