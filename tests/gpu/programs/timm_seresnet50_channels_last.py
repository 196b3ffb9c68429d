"""timm SE-ResNet-50, SGD + cosine, fp16 autocast with timm's NativeScaler, channels_last."""
import argparse
import os
import tempfile
import time

import timm
import timm.utils
import torch
import torch.nn as nn
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import FakeData


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="seresnet50")
    p.add_argument("--num-classes", type=int, default=100)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--img-size", type=int, default=224)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--train-size", type=int, default=640)
    p.add_argument("--val-size", type=int, default=192)
    p.add_argument("--device", default="cuda")
    return p.parse_args()


def validate(model, loader, loss_fn, args, device):
    losses = timm.utils.AverageMeter()
    top1 = timm.utils.AverageMeter()
    top5 = timm.utils.AverageMeter()
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            x = x.to(device).contiguous(memory_format=torch.channels_last)
            y = y.to(device)
            with torch.autocast(device.type, dtype=torch.float16):
                out = model(x)
                loss = loss_fn(out, y)
            acc1, acc5 = timm.utils.accuracy(out, y, topk=(1, 5))
            losses.update(loss.item(), x.size(0))
            top1.update(acc1.item(), x.size(0))
            top5.update(acc5.item(), x.size(0))
    return losses.avg, top1.avg, top5.avg


def main():
    args = get_args()
    timm.utils.random_seed(42)
    device = torch.device(args.device)
    if device.type == "cuda":
        torch.backends.cudnn.benchmark = True

    train_tf = transforms.Compose([
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ])
    val_tf = transforms.Compose([
        transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ])
    shape = (3, args.img_size, args.img_size)
    train_ds = FakeData(args.train_size, shape, args.num_classes, train_tf)
    val_ds = FakeData(args.val_size, shape, args.num_classes, val_tf, random_offset=10000)
    train_loader = DataLoader(train_ds, args.batch_size, shuffle=True, num_workers=2, pin_memory=True, drop_last=True)
    val_loader = DataLoader(val_ds, args.batch_size, num_workers=2, pin_memory=True)

    model = timm.create_model(args.model, pretrained=False, num_classes=args.num_classes)
    model = model.to(device, memory_format=torch.channels_last)
    print(f"{args.model}: {sum(p.numel() for p in model.parameters()) / 1e6:.1f}M parameters")

    optimizer = create_optimizer_v2(model, opt="sgd", lr=args.lr, weight_decay=1e-4, momentum=0.9)
    scheduler = CosineLRScheduler(optimizer, t_initial=args.epochs, lr_min=1e-5, warmup_t=1, warmup_lr_init=1e-3)
    loss_scaler = timm.utils.NativeScaler()
    train_loss_fn = LabelSmoothingCrossEntropy(0.1).to(device)
    val_loss_fn = nn.CrossEntropyLoss().to(device)

    best = 0.0
    with tempfile.TemporaryDirectory() as out_dir:
        for epoch in range(args.epochs):
            model.train()
            scheduler.step(epoch)
            meter = timm.utils.AverageMeter()
            start = time.time()
            for it, (x, y) in enumerate(train_loader):
                x = x.to(device, non_blocking=True).contiguous(memory_format=torch.channels_last)
                y = y.to(device, non_blocking=True)
                with torch.autocast(device.type, dtype=torch.float16):
                    out = model(x)
                    loss = train_loss_fn(out, y)
                optimizer.zero_grad()
                loss_scaler(loss, optimizer, parameters=model.parameters())
                meter.update(loss.item(), x.size(0))
                if it % 5 == 0:
                    print(f"epoch {epoch} it {it} loss {meter.val:.4f} lr {optimizer.param_groups[0]['lr']:.5f}")
            val_loss, acc1, acc5 = validate(model, val_loader, val_loss_fn, args, device)
            print(f"epoch {epoch} train {meter.avg:.4f} val {val_loss:.4f} "
                  f"top1 {acc1:.2f} top5 {acc5:.2f} ({time.time() - start:.1f}s)")
            if acc1 >= best:
                best = acc1
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                            "amp": loss_scaler.state_dict(), "epoch": epoch},
                           os.path.join(out_dir, "model_best.pth"))

    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
