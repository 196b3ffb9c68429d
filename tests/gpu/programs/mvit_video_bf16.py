# Multiscale Vision Transformer v2-S (torchvision) on short clips: bf16 autocast, mixup, accumulation, multi-view test
import os
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchmetrics import MeanMetric
from torchmetrics.classification import MulticlassAccuracy
from torchvision.models.video import mvit_v2_s

FRAMES, SIZE, CLASSES = 16, 224, 40
BATCH, ACCUM, EPOCHS = 4, 2, 2
TRAIN, VAL, VIEWS = 108, 24, 3
DEVICE = "cuda"
PRINT = 6


class Clips(Dataset):
    """A square moves over a noise background; direction and speed give the class."""

    def __init__(self, n, frames, size, seed):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, CLASSES, (n,), generator=g)
        self.bg = torch.rand(8, 3, 1, size, size, generator=g)
        self.frames, self.size = frames, size

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        y = int(self.y[i])
        clip = self.bg[i % 8].repeat(1, self.frames, 1, 1)
        for t in range(self.frames):
            p = (t * (1 + y // 4)) % (self.size - 32)
            if y % 2:
                clip[y % 3, t, p:p + 32, 40:72] = 1.0
            else:
                clip[y % 3, t, 40:72, p:p + 32] = 1.0
        return (clip - 0.45) / 0.225, y


def mixup(x, y, alpha=0.8):
    lam = torch.distributions.Beta(alpha, alpha).sample().item()
    perm = torch.randperm(len(x), device=x.device)
    yh = F.one_hot(y, CLASSES).float() * 0.9 + 0.1 / CLASSES
    return lam * x + (1 - lam) * x[perm], lam * yh + (1 - lam) * yh[perm]


def main():
    torch.manual_seed(5)
    train = DataLoader(Clips(TRAIN, FRAMES, SIZE, 0), BATCH, shuffle=True, drop_last=True, num_workers=2, pin_memory=True)
    val = DataLoader(Clips(VAL, FRAMES, SIZE, 1), BATCH, num_workers=1, pin_memory=True)
    model = mvit_v2_s(weights=None, dropout=0.5, stochastic_depth_prob=0.2)
    model.head[1] = nn.Linear(model.head[1].in_features, CLASSES)
    model.to(DEVICE)
    decay = [p for p in model.parameters() if p.ndim > 1]
    no_decay = [p for p in model.parameters() if p.ndim <= 1]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05}, {"params": no_decay, "weight_decay": 0.0}],
                            lr=1e-4, fused=True)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 3e-4, total_steps=EPOCHS * len(train) // ACCUM + 1)
    loss_m, acc = MeanMetric().to(DEVICE), MulticlassAccuracy(CLASSES, average="micro").to(DEVICE)
    folder = tempfile.mkdtemp()
    for epoch in range(EPOCHS):
        model.train()
        loss_m.reset()
        t0 = time.time()
        opt.zero_grad(set_to_none=True)
        for i, (x, y) in enumerate(train):
            x, y = x.to(DEVICE, non_blocking=True), y.to(DEVICE, non_blocking=True)
            x, target = mixup(x, y)
            with torch.autocast(DEVICE, dtype=torch.bfloat16):
                logits = model(x)
                loss = torch.sum(-target * F.log_softmax(logits.float(), dim=-1), dim=-1).mean()
            (loss / ACCUM).backward()
            loss_m.update(loss.detach())
            if (i + 1) % ACCUM == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                sched.step()
                opt.zero_grad(set_to_none=True)
            if i % PRINT == 0:
                print(f"epoch {epoch} {i}/{len(train)} loss {loss.item():.3f}")
        print(f"epoch {epoch} mean loss {loss_m.compute().item():.3f} {time.time() - t0:.1f}s")
        model.eval()
        acc.reset()
        with torch.no_grad():
            for x, y in val:
                x, y = x.to(DEVICE), y.to(DEVICE)
                b = x.shape[0]
                views = torch.stack([torch.roll(x, 16 * v, -1) for v in range(VIEWS)], 1).flatten(0, 1)
                with torch.autocast(DEVICE, dtype=torch.bfloat16):
                    out = model(views).float().softmax(-1).view(b, VIEWS, -1).mean(1)
                acc.update(out, y)
        print(f"epoch {epoch} val acc {acc.compute().item():.3f}")
        torch.save({"model": model.state_dict(), "opt": opt.state_dict()}, os.path.join(folder, f"{epoch}.pt"))


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
