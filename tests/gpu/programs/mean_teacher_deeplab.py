# SPDX-License-Identifier: Apache-2.0
"""Semi-supervised semantic segmentation: mean teacher, DeepLabV3, crops for training, whole street scenes in validation."""
import argparse
import copy
import itertools
import os

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.models.segmentation import deeplabv3_mobilenet_v3_large, deeplabv3_resnet50

SMALL = os.environ.get("SMALL") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NUM_CLASSES = 19


class Streets(Dataset):
    def __init__(self, n: int, height: int, width: int, labelled: bool = True):
        self.n, self.h, self.w, self.labelled = n, height, width, labelled

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int):
        g = torch.Generator().manual_seed(i)
        img = torch.rand(3, self.h // 8, self.w // 8, generator=g)
        img = F.interpolate(img[None], size=(self.h, self.w), mode="bilinear")[0]
        if not self.labelled:
            return img
        mask = torch.randint(0, NUM_CLASSES, (self.h // 16, self.w // 16), generator=g)
        mask = mask.repeat_interleave(16, 0).repeat_interleave(16, 1)
        full = torch.full((self.h, self.w), 255, dtype=torch.long)
        full[: mask.shape[0], : mask.shape[1]] = mask[: self.h, : self.w]
        return img, full


class ConfusionMatrix:
    def __init__(self, classes):
        self.classes, self.mat = classes, None

    def update(self, target, pred):
        if self.mat is None:
            self.mat = torch.zeros((self.classes, self.classes), dtype=torch.int64, device=target.device)
        with torch.inference_mode():
            k = (target >= 0) & (target < self.classes)
            idx = self.classes * target[k].to(torch.int64) + pred[k]
            self.mat += torch.bincount(idx, minlength=self.classes ** 2).reshape(self.classes, self.classes)

    def miou(self):
        h = self.mat.float()
        return (torch.diag(h) / (h.sum(1) + h.sum(0) - torch.diag(h)).clamp(min=1)).mean().item()


@torch.no_grad()
def update_teacher(student, teacher, alpha):
    for t, s in zip(teacher.parameters(), student.parameters()):
        t.mul_(alpha).add_(s, alpha=1 - alpha)
    for t, s in zip(teacher.buffers(), student.buffers()):
        t.copy_(s)


def evaluate(model, loader):
    model.eval()
    cm = ConfusionMatrix(NUM_CLASSES)
    with torch.inference_mode():
        for img, target in loader:
            img, target = img.to(device), target.to(device)
            out = model(img)["out"]
            cm.update(target.flatten(), out.argmax(1).flatten())
    return cm.miou()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=8)
    ap.add_argument("--lr", type=float, default=0.01)
    args = ap.parse_args()
    torch.manual_seed(0)
    if SMALL:
        args.batch_size = 2
    crop = 65 if SMALL else 321
    n = args.batch_size * (2 if SMALL else 6)
    workers = 0 if SMALL else 4
    labelled = DataLoader(Streets(n, crop, crop), args.batch_size, shuffle=True, drop_last=True, num_workers=workers)
    unlabelled = DataLoader(Streets(n * 2, crop, crop, False), args.batch_size, shuffle=True, drop_last=True, num_workers=workers)
    val = DataLoader(Streets(2 if SMALL else 12, 64 if SMALL else 512, 128 if SMALL else 1024), 1 if SMALL else 4, num_workers=workers)
    build = deeplabv3_mobilenet_v3_large if SMALL else deeplabv3_resnet50
    student = build(weights=None, weights_backbone=None, num_classes=NUM_CLASSES, aux_loss=True).to(device)
    teacher = copy.deepcopy(student)
    for p in teacher.parameters():
        p.requires_grad_(False)
    params = [
        {"params": student.backbone.parameters(), "lr": args.lr / 10},
        {"params": itertools.chain(student.classifier.parameters(), student.aux_classifier.parameters())},
    ]
    optimizer = torch.optim.SGD(params, lr=args.lr, momentum=0.9, weight_decay=1e-4)
    steps = 2 * len(labelled)
    scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=steps, power=0.9)
    it = 0
    for epoch in range(2):
        student.train()
        teacher.train()
        for (x, y), u in zip(labelled, unlabelled):
            x, y, u = x.to(device), y.to(device), u.to(device)
            with torch.no_grad():
                pseudo = teacher(u)["out"].softmax(1)
                confidence, pseudo_label = pseudo.max(1)
            noisy = u + 0.1 * torch.randn_like(u)
            out = student(torch.cat([x, noisy]))
            sup = F.cross_entropy(out["out"][: len(x)], y, ignore_index=255) + 0.4 * F.cross_entropy(out["aux"][: len(x)], y, ignore_index=255)
            unsup = (F.cross_entropy(out["out"][len(x):], pseudo_label, reduction="none") * (confidence > 0.1)).mean()
            loss = sup + 0.5 * unsup
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            it += 1
            update_teacher(student, teacher, min(0.99, 1 - 1 / (it + 1)))
        print(f"epoch {epoch} loss {loss.item():.3f} student {evaluate(student, val):.4f} teacher {evaluate(teacher, val):.4f}")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
