# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning a timm ConvNeXt V2 with layer-wise lr decay, bf16 autocast, accumulation of 2, clipping; top-1/top-5 at twice the batch, best checkpoint saved."""
import argparse
import math
import os
import tempfile

import timm
import torch
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import AverageMeter, accuracy
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"


def get_args():
    ap = argparse.ArgumentParser("finetune")
    ap.add_argument("-b", "--batch-size", default=64, type=int)
    ap.add_argument("--model", default="convnextv2_atto" if SMALL else "convnextv2_tiny")
    ap.add_argument("--epochs", default=2, type=int)
    ap.add_argument("--update-freq", default=2, type=int)
    ap.add_argument("--layer-decay", default=0.8, type=float)
    ap.add_argument("--clip-grad", default=1.0, type=float)
    ap.add_argument("--drop-path", default=0.1, type=float)
    ap.add_argument("--num-classes", default=200, type=int)
    ap.add_argument("--output", default=None)
    return ap.parse_args()


class Birds(Dataset):
    """Noise with a class-dependent colour cast."""

    def __init__(self, n, size, classes, seed):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, classes, (n,), generator=g)
        self.tint = torch.randn(classes, 3, 1, 1, generator=g)
        self.size = size

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        y = self.labels[i]
        return torch.randn(3, self.size, self.size) + self.tint[y], y


def validate(model, loader, device):
    top1, top5, losses = AverageMeter(), AverageMeter(), AverageMeter()
    model.eval()
    criterion = torch.nn.CrossEntropyLoss()
    with torch.inference_mode():
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            with torch.autocast(device_type=device, dtype=torch.bfloat16):
                out = model(x)
                loss = criterion(out, y)
            a1, a5 = accuracy(out, y, topk=(1, 5))
            losses.update(loss.item(), len(x))
            top1.update(a1.item(), len(x))
            top5.update(a5.item(), len(x))
    return losses.avg, top1.avg, top5.avg


def main():
    args = get_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(42)
    if SMALL:
        args.batch_size = min(args.batch_size, 4)
        args.num_classes = 10
    size = 64 if SMALL else 224
    steps = 2 if SMALL else 12
    train = DataLoader(Birds(args.batch_size * steps, size, args.num_classes, 0), args.batch_size, shuffle=True, drop_last=True, num_workers=0 if SMALL else 8, pin_memory=device == "cuda")
    val = DataLoader(Birds(args.batch_size * (2 if SMALL else 5), size, args.num_classes, 1), args.batch_size * 2, num_workers=0 if SMALL else 4, pin_memory=device == "cuda")

    model = timm.create_model(args.model, pretrained=False, num_classes=args.num_classes, drop_path_rate=args.drop_path).to(device)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05, layer_decay=args.layer_decay)
    updates = len(train) // args.update_freq
    scheduler = CosineLRScheduler(optimizer, t_initial=args.epochs * updates, warmup_t=1, warmup_lr_init=1e-6, t_in_epochs=False)
    criterion = LabelSmoothingCrossEntropy(0.1)
    out_dir = args.output or tempfile.mkdtemp()
    best, n_updates = -math.inf, 0

    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad()
        meter = AverageMeter()
        for it, (x, y) in enumerate(train):
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            with torch.autocast(device_type=device, dtype=torch.bfloat16):
                loss = criterion(model(x), y)
            meter.update(loss.item(), len(x))
            (loss / args.update_freq).backward()
            if (it + 1) % args.update_freq == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
                optimizer.step()
                optimizer.zero_grad()
                n_updates += 1
                scheduler.step_update(n_updates)
        vloss, a1, a5 = validate(model, val, device)
        print(f"[{epoch}] train {meter.avg:.3f} | val {vloss:.3f} acc@1 {a1:.2f} acc@5 {a5:.2f}")
        if a1 > best:
            best = a1
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "args": vars(args)}, os.path.join(out_dir, "best.pth"))


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
