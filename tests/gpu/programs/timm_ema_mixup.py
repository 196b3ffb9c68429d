#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A short version of timm's train.py: mixup, LAMB, EMA, channels_last, fp16 with its own scaler; model and EMA both validated at a higher resolution."""
import argparse
import os
from collections import OrderedDict
from contextlib import suppress

import torch
import torch.nn as nn
from timm import create_model
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import AverageMeter, ModelEmaV3, NativeScaler, accuracy, random_seed

SMALL = os.environ.get("SMALL") == "1"
parser = argparse.ArgumentParser()
parser.add_argument("--model", default="resnet10t" if SMALL else "regnety_032")
parser.add_argument("-b", "--batch-size", type=int, default=64)
parser.add_argument("-vb", "--validation-batch-size", type=int, default=None)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--num-classes", type=int, default=100)
parser.add_argument("--clip-grad", type=float, default=1.0)


class Synthetic(torch.utils.data.Dataset):
    def __init__(self, n, size, classes):
        self.n, self.size, self.classes = n, size, classes
        self.base = torch.randint(0, 256, (16, 3, size, size), dtype=torch.uint8)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.base[i % 16], i % self.classes


class Prefetch:
    """Normalises on the device like timm's PrefetchLoader."""

    def __init__(self, loader, device, dtype=torch.float32):
        self.loader, self.device, self.dtype = loader, device, dtype
        self.mean = torch.tensor([123.7, 116.3, 103.5], device=device, dtype=dtype).view(1, 3, 1, 1)
        self.std = torch.tensor([58.4, 57.1, 57.4], device=device, dtype=dtype).view(1, 3, 1, 1)

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        for x, y in self.loader:
            yield x.to(self.device, self.dtype).sub_(self.mean).div_(self.std), y.to(self.device)


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, args, amp, scaler, scheduler, ema, mixup):
    losses = AverageMeter()
    model.train()
    for i, (x, y) in enumerate(loader):
        x, y = mixup(x, y)
        x = x.contiguous(memory_format=torch.channels_last)
        with amp():
            loss = loss_fn(model(x), y)
        losses.update(loss.item(), x.size(0))
        optimizer.zero_grad()
        if scaler is not None:
            scaler(loss, optimizer, clip_grad=args.clip_grad, clip_mode="norm", parameters=model.parameters())
        else:
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
            optimizer.step()
        ema.update(model, step=epoch * len(loader) + i)
        scheduler.step_update(epoch * len(loader) + i)
    return OrderedDict(loss=losses.avg)


def validate(model, loader, loss_fn, amp, suffix=""):
    losses, top1, top5 = AverageMeter(), AverageMeter(), AverageMeter()
    model.eval()
    with torch.inference_mode():
        for x, y in loader:
            x = x.contiguous(memory_format=torch.channels_last)
            with amp():
                out = model(x)
                loss = loss_fn(out, y)
            a1, a5 = accuracy(out, y, topk=(1, 5))
            losses.update(loss.item(), x.size(0))
            top1.update(a1.item(), x.size(0))
            top5.update(a5.item(), x.size(0))
    return OrderedDict([("loss" + suffix, losses.avg), ("top1" + suffix, top1.avg), ("top5" + suffix, top5.avg)])


def main():
    args = parser.parse_args()
    random_seed(42)
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    if SMALL:
        args.batch_size = 4
    vb = args.validation_batch_size or args.batch_size * 2
    tr_size, va_size = (64, 96) if SMALL else (224, 288)
    model = create_model(args.model, pretrained=False, num_classes=args.num_classes, drop_rate=0.1).to(device, memory_format=torch.channels_last)
    ema = ModelEmaV3(model, decay=0.999, use_warmup=True)
    optimizer = create_optimizer_v2(model, opt="lamb", lr=5e-3, weight_decay=0.02)
    n = args.batch_size * 8
    train = Prefetch(torch.utils.data.DataLoader(Synthetic(n, tr_size, args.num_classes), args.batch_size, shuffle=True, drop_last=True, num_workers=0 if SMALL else 4, pin_memory=cuda), device)
    val = Prefetch(torch.utils.data.DataLoader(Synthetic(n // 2, va_size, args.num_classes), vb, num_workers=0 if SMALL else 4, pin_memory=cuda), device)
    scheduler = CosineLRScheduler(optimizer, t_initial=args.epochs * len(train), lr_min=1e-5, warmup_t=3, warmup_lr_init=1e-5, t_in_epochs=False)
    mixup = Mixup(mixup_alpha=0.2, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=args.num_classes)
    amp = (lambda: torch.autocast("cuda", dtype=torch.float16)) if cuda else suppress
    scaler = NativeScaler() if cuda else None
    for epoch in range(args.epochs):
        print(epoch, dict(train_one_epoch(epoch, model, train, optimizer, SoftTargetCrossEntropy(), args, amp, scaler, scheduler, ema, mixup)))
        print("  ", dict(validate(model, val, nn.CrossEntropyLoss(), amp)))
        print("  ", dict(validate(ema.module, val, nn.CrossEntropyLoss(), amp, "_ema")))


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
