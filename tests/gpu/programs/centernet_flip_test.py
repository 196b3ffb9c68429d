# SPDX-License-Identifier: Apache-2.0
"""CenterNet: ResNet-18 with deconvolutions, heat map, size and offset heads. Validation joins each batch with its mirror image (flip test)."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader, Dataset
from torchvision.ops import nms

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
CLASSES, STRIDE = 80, 4


class Boxes(Dataset):
    def __init__(self, n, size, most=20):
        self.n, self.size, self.most = n, size, most

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        out = self.size // STRIDE
        img = torch.randn(3, self.size, self.size, generator=g) * 0.1
        hm = torch.zeros(CLASSES, out, out)
        wh, off = torch.zeros(self.most, 2), torch.zeros(self.most, 2)
        ind, mask = torch.zeros(self.most, dtype=torch.long), torch.zeros(self.most)
        boxes = torch.zeros(self.most, 5)
        grid = torch.arange(out).float()
        for k in range(int(torch.randint(1, self.most, (1,), generator=g))):
            c = int(torch.randint(0, CLASSES, (1,), generator=g))
            cx, cy = (torch.rand(2, generator=g) * 0.8 + 0.1) * out
            w, h = torch.rand(2, generator=g) * out / 4 + 2
            ix, iy = int(cx), int(cy)
            sigma = float((w + h) / 12)
            blob = torch.exp(-((grid[None] - ix) ** 2 + (grid[:, None] - iy) ** 2) / (2 * sigma ** 2))
            hm[c] = torch.maximum(hm[c], blob)
            wh[k], off[k] = torch.stack([w, h]), torch.stack([cx - ix, cy - iy])
            ind[k], mask[k] = iy * out + ix, 1
            boxes[k] = torch.tensor([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, c])
            y0, x0 = int(max(0, (cy - h / 2) * STRIDE)), int(max(0, (cx - w / 2) * STRIDE))
            img[:, y0:y0 + int(h * STRIDE), x0:x0 + int(w * STRIDE)] += c / CLASSES
        return {"image": img, "hm": hm, "wh": wh, "off": off, "ind": ind, "mask": mask, "boxes": boxes}


class CenterNet(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        r = torchvision.models.resnet18(weights=None)
        self.backbone = nn.Sequential(*list(r.children())[:-2])
        layers, c = [], 512
        for _ in range(3):
            layers += [nn.ConvTranspose2d(c, width, 4, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
            c = width
        self.up = nn.Sequential(*layers)
        self.heads = nn.ModuleDict({n: nn.Sequential(nn.Conv2d(width, 64, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(64, o, 1)) for n, o in (("hm", CLASSES), ("wh", 2), ("off", 2))})
        nn.init.constant_(self.heads["hm"][-1].bias, -2.19)

    def forward(self, x):
        x = self.up(self.backbone(x))
        return {k: h(x) for k, h in self.heads.items()}


def focal(pred, gt):
    pred = pred.sigmoid().clamp(1e-4, 1 - 1e-4)
    pos, neg = gt.eq(1).float(), gt.lt(1).float()
    pos_loss = (torch.log(pred) * (1 - pred) ** 2 * pos).sum()
    neg_loss = (torch.log(1 - pred) * pred ** 2 * (1 - gt) ** 4 * neg).sum()
    return -(pos_loss + neg_loss) / pos.sum().clamp(min=1)


def gather(feat, ind):
    feat = feat.permute(0, 2, 3, 1).flatten(1, 2)
    return feat.gather(1, ind[..., None].expand(-1, -1, feat.shape[2]))


def decode(hm, wh, off, k=100):
    hm = hm * (F.max_pool2d(hm, 3, 1, 1) == hm)
    b, c, h, w = hm.shape
    scores, idx = hm.flatten(1).topk(k)
    cls, ind = idx // (h * w), idx % (h * w)
    xy = torch.stack([ind % w, ind // w], -1).float() + gather(off, ind)
    size = gather(wh, ind)
    return torch.cat([xy - size / 2, xy + size / 2], -1), scores, cls


@torch.no_grad()
def validate(model, loader):
    model.eval()
    found = total = 0
    for batch in loader:
        x = batch["image"].to(device)
        out = model(torch.cat([x, x.flip(3)]))
        hm, hm_f = out["hm"].sigmoid().chunk(2)
        wh, wh_f = out["wh"].chunk(2)
        boxes, scores, cls = decode((hm + hm_f.flip(3)) / 2, (wh + wh_f.flip(3)) / 2, out["off"].chunk(2)[0])
        for b in range(len(x)):
            keep = nms(boxes[b], scores[b], 0.5)[:50]
            gt = batch["boxes"][b][batch["mask"][b] > 0].to(device)
            iou = torchvision.ops.box_iou(gt[:, :4], boxes[b][keep])
            same = gt[:, 4:5] == cls[b][keep][None]
            found += ((iou > 0.5) & same).any(1).sum().item()
            total += len(gt)
    return found / max(total, 1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=16)
    args = p.parse_args()
    torch.manual_seed(317)
    torch.backends.cudnn.benchmark = True
    size = 64 if SMALL else 512
    if SMALL:
        args.batch_size = 2
    workers = 0 if SMALL else 8
    train = DataLoader(Boxes(args.batch_size * 6, size), args.batch_size, shuffle=True, num_workers=workers, pin_memory=device == "cuda", drop_last=True)
    val = DataLoader(Boxes(args.batch_size * 2, size), args.batch_size, num_workers=workers)
    model = CenterNet(32 if SMALL else 256).to(device)
    optimizer = torch.optim.Adam(model.parameters(), 5e-4)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [1])
    for epoch in range(2):
        model.train()
        for batch in train:
            batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}
            out = model(batch["image"])
            m = batch["mask"][..., None]
            n = m.sum() + 1e-4
            hm = focal(out["hm"], batch["hm"])
            wh = (F.l1_loss(gather(out["wh"], batch["ind"]), batch["wh"], reduction="none") * m).sum() / n
            off = (F.l1_loss(gather(out["off"], batch["ind"]), batch["off"], reduction="none") * m).sum() / n
            loss = hm + 0.1 * wh + off
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        print(f"epoch {epoch}: hm {hm.item():.3f} wh {wh.item():.3f} off {off.item():.3f} recall {validate(model, val):.3f}")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
