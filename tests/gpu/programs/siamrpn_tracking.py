# SPDX-License-Identifier: Apache-2.0
"""Siamese tracking: SiamRPN with depthwise cross-correlation on a dilated ResNet-50 (layers 2-4 fused), anchors, SGD with log-spaced warm-up, backbone unfrozen after the first epoch, fp32; no validation."""
import argparse
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet50
from torchvision.models._utils import IntermediateLayerGetter

SMALL = os.environ.get("SMALL") == "1"
ANCHORS = 5


class Pairs(Dataset):
    def __init__(self, n, exemplar, search, score, stride=8):
        self.n, self.exemplar, self.search, self.score = n, exemplar, search, score
        ratios = np.array([0.33, 0.5, 1, 2, 3])
        w, h = np.sqrt(search ** 2 / 16 / ratios), np.sqrt(search ** 2 / 16 / ratios) * ratios
        off = search / 2 - (score // 2) * stride
        ys, xs = np.meshgrid(np.arange(score), np.arange(score), indexing="ij")
        self.cx, self.cy = off + xs * stride, off + ys * stride
        self.w, self.h = w[:, None, None], h[:, None, None]

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        bw, bh = rng.uniform(0.15, 0.4, 2) * self.search
        bx, by = self.search / 2 + rng.uniform(-0.15, 0.15, 2) * self.search
        x = torch.from_numpy(rng.standard_normal((3, self.search, self.search), dtype=np.float32))
        z = torch.from_numpy(rng.standard_normal((3, self.exemplar, self.exemplar), dtype=np.float32))
        x1, y1 = np.maximum(self.cx - self.w / 2, bx - bw / 2), np.maximum(self.cy - self.h / 2, by - bh / 2)
        x2, y2 = np.minimum(self.cx + self.w / 2, bx + bw / 2), np.minimum(self.cy + self.h / 2, by + bh / 2)
        inter = np.clip(x2 - x1, 0, None) * np.clip(y2 - y1, 0, None)
        iou = inter / (self.w * self.h + bw * bh - inter)
        cls = np.full(iou.shape, -1, dtype=np.int64)
        cls[iou < 0.3] = 0
        cls[iou > 0.5] = 1
        one = np.ones_like(iou)
        loc = np.stack([(bx - self.cx) / self.w, (by - self.cy) / self.h, np.log(bw / self.w) * one, np.log(bh / self.h) * one])
        return {"template": z, "search": x, "cls": torch.from_numpy(cls), "loc": torch.from_numpy(loc.astype(np.float32))}


def xcorr_depthwise(x, kernel):
    b, c = kernel.shape[:2]
    out = F.conv2d(x.reshape(1, b * c, *x.shape[2:]), kernel.reshape(b * c, 1, *kernel.shape[2:]), groups=b * c)
    return out.view(b, c, *out.shape[2:])


class DepthwiseXCorr(nn.Module):
    def __init__(self, c, hidden, out):
        super().__init__()
        make = lambda: nn.Sequential(nn.Conv2d(c, hidden, 3, bias=False), nn.BatchNorm2d(hidden), nn.ReLU(inplace=True))
        self.conv_kernel, self.conv_search = make(), make()
        self.head = nn.Sequential(nn.Conv2d(hidden, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU(inplace=True), nn.Conv2d(hidden, out, 1))

    def forward(self, z, x):
        return self.head(xcorr_depthwise(self.conv_search(x), self.conv_kernel(z)))


class SiamRPN(nn.Module):
    def __init__(self, hidden=256):
        super().__init__()
        net = resnet50(weights=None, replace_stride_with_dilation=[False, True, True])
        self.backbone = IntermediateLayerGetter(net, {"layer2": "p2", "layer3": "p3", "layer4": "p4"})
        self.neck = nn.ModuleDict({k: nn.Sequential(nn.Conv2d(c, hidden, 1, bias=False), nn.BatchNorm2d(hidden)) for k, c in (("p2", 512), ("p3", 1024), ("p4", 2048))})
        self.cls = nn.ModuleDict({k: DepthwiseXCorr(hidden, hidden, 2 * ANCHORS) for k in self.neck})
        self.loc = nn.ModuleDict({k: DepthwiseXCorr(hidden, hidden, 4 * ANCHORS) for k in self.neck})
        self.cls_weight, self.loc_weight = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))

    def features(self, img, crop=None):
        f = {k: self.neck[k](v) for k, v in self.backbone(img).items()}
        if crop:
            f = {k: v[:, :, (v.size(2) - crop) // 2:(v.size(2) - crop) // 2 + crop, (v.size(3) - crop) // 2:(v.size(3) - crop) // 2 + crop] for k, v in f.items()}
        return f

    def forward(self, z, x):
        zf, xf = self.features(z, crop=7), self.features(x)
        wc, wl = self.cls_weight.softmax(0), self.loc_weight.softmax(0)
        cls = sum(w * self.cls[k](zf[k], xf[k]) for w, k in zip(wc, self.neck))
        loc = sum(w * self.loc[k](zf[k], xf[k]) for w, k in zip(wl, self.neck))
        return cls, loc


def criterion(cls, loc, batch):
    b, _, s, _ = cls.shape
    logp = cls.view(b, 2, ANCHORS, s, s).log_softmax(1)
    label = batch["cls"]
    pos, neg = label == 1, label == 0
    cls_loss = -0.5 * logp[:, 1][pos].sum() / pos.sum().clamp(min=1) - 0.5 * logp[:, 0][neg].sum() / neg.sum().clamp(min=1)
    diff = (loc.view(b, 4, ANCHORS, s, s) - batch["loc"]).abs().sum(1)
    loc_loss = (diff * pos).sum() / pos.sum().clamp(min=1)
    return cls_loss, loc_loss


def build_optimizer(model, lr, train_backbone):
    for p in model.backbone.parameters():
        p.requires_grad = False
    for m in model.backbone.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.eval()
    if train_backbone:
        for name in ("layer2", "layer3", "layer4"):
            for p in model.backbone[name].parameters():
                p.requires_grad = True
            model.backbone[name].train()
    groups = [{"params": [p for p in model.backbone.parameters() if p.requires_grad], "lr": lr * 0.1}] if train_backbone else []
    groups.append({"params": [p for n, p in model.named_parameters() if not n.startswith("backbone")], "lr": lr})
    return torch.optim.SGD(groups, momentum=0.9, weight_decay=1e-4)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=28)
    ap.add_argument("--epochs", type=int, default=2)
    args = ap.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(123)
    if SMALL:
        args.batch_size = min(args.batch_size, 2)
    search = 159 if SMALL else 255
    model = SiamRPN(32 if SMALL else 256).to(device)
    with torch.no_grad():
        score = model.eval()(torch.zeros(1, 3, 127, 127, device=device), torch.zeros(1, 3, search, search, device=device))[0].shape[-1]
    loader = DataLoader(Pairs(args.batch_size * (2 if SMALL else 8), 127, search, score), batch_size=args.batch_size, shuffle=True, num_workers=0 if SMALL else 6, pin_memory=device == "cuda", drop_last=True)
    lrs = np.logspace(np.log10(0.001), np.log10(0.005), args.epochs)
    for epoch in range(args.epochs):
        model.train()
        optimizer = build_optimizer(model, lrs[epoch], train_backbone=epoch > 0)
        for batch in loader:
            batch = {k: v.to(device) for k, v in batch.items()}
            cls, loc = model(batch["template"], batch["search"])
            cls_loss, loc_loss = criterion(cls, loc, batch)
            loss = cls_loss + 1.2 * loc_loss
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()
        print(f"epoch {epoch} cls {cls_loss.item():.4f} loc {loc_loss.item():.4f} (score map {score})")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
