import argparse

import timm
import torch
import torch.nn as nn
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV2, accuracy
from torch.utils.data import DataLoader, TensorDataset


def make_images(n, classes, size, seed):
    """Byte images: a class pattern at low resolution plus noise, enlarged."""
    g = torch.Generator().manual_seed(seed)
    base = torch.rand(classes, 3, 14, 14, generator=torch.Generator().manual_seed(42))
    y = torch.randint(0, classes, (n,), generator=g)
    small = (0.5 * base[y] + 0.5 * torch.rand(n, 3, 14, 14, generator=g)) * 255
    x = small.to(torch.uint8).repeat_interleave(size // 14, 2).repeat_interleave(size // 14, 3)
    return TensorDataset(x, y)


def normalise(x, device):
    return x.to(device, non_blocking=True).float().div_(255).sub_(0.5).div_(0.25)


def validate(model, loader, device):
    model.eval()
    top1 = top5 = n = 0
    with torch.no_grad():
        for x, y in loader:
            with torch.autocast(device.type, dtype=torch.bfloat16):
                out = model(normalise(x, device))
            a1, a5 = accuracy(out.float(), y.to(device), topk=(1, 5))
            top1, top5, n = top1 + a1.item() * len(y), top5 + a5.item() * len(y), n + len(y)
    return top1 / n, top5 / n


def main():
    ap = argparse.ArgumentParser(description="MLP-Mixer with torch.compile, bf16, mixup, EMA weights in evaluation")
    ap.add_argument("--model", default="mixer_s16_224")
    ap.add_argument("--batch-size", type=int, default=256)
    ap.add_argument("--val-batch-size", type=int, default=256)
    ap.add_argument("--images", type=int, default=5120)
    ap.add_argument("--classes", type=int, default=100)
    ap.add_argument("--size", type=int, default=224)
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--no-compile", action="store_true")
    a = ap.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    train = DataLoader(make_images(a.images, a.classes, a.size, 1), a.batch_size, shuffle=True, drop_last=True, pin_memory=device.type == "cuda", num_workers=2)
    val = DataLoader(make_images(a.val_batch_size * 2, a.classes, a.size, 2), a.val_batch_size)
    model = timm.create_model(a.model, pretrained=False, num_classes=a.classes, img_size=a.size, drop_path_rate=0.1).to(device)
    ema = ModelEmaV2(model, decay=0.95)
    compiled = model if a.no_compile else torch.compile(model)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.1)
    scheduler = CosineLRScheduler(optimizer, t_initial=a.epochs * len(train), warmup_t=10, warmup_lr_init=1e-5, t_in_epochs=False)
    mixup = Mixup(mixup_alpha=0.5, cutmix_alpha=1.0, num_classes=a.classes, label_smoothing=0.1)
    criterion = SoftTargetCrossEntropy()
    step = 0
    for epoch in range(a.epochs):
        compiled.train()
        total = 0.0
        for x, y in train:
            x, y = mixup(normalise(x, device), y.to(device))
            with torch.autocast(device.type, dtype=torch.bfloat16):
                loss = criterion(compiled(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            ema.update(model)
            step += 1
            scheduler.step_update(step)
            total += loss.item()
        top1, top5 = validate(ema.module, val, device)
        print(f"epoch {epoch} loss {total / len(train):.3f} ema top1 {top1:.2f} top5 {top5:.2f}", flush=True)

    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
