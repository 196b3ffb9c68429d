"""Anchor-free one-stage detector in the manner of YOLOX, bf16 autocast, EMA weights evaluated each epoch."""
import argparse
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.ops import batched_nms, box_iou, generalized_box_iou_loss

STRIDES = (8, 16, 32)
RANGES = ((0, 64), (64, 128), (128, 1e5))


class Shapes(Dataset):
    def __init__(self, n, size, classes, seed):
        g = torch.Generator().manual_seed(seed)
        self.size, self.classes = size, classes
        self.boxes, self.labels = [], []
        self.noise = torch.rand(3, size + 64, size + 64, generator=g) * 0.3
        self.color = torch.rand(classes, 3, generator=torch.Generator().manual_seed(0))
        for _ in range(n):
            k = int(torch.randint(2, 12, (1,), generator=g))
            wh = torch.rand(k, 2, generator=g) * size * 0.35 + 16
            xy = torch.rand(k, 2, generator=g) * (size - wh)
            self.boxes.append(torch.cat([xy, xy + wh], 1))
            self.labels.append(torch.randint(0, classes, (k,), generator=g))

    def __len__(self):
        return len(self.boxes)

    def __getitem__(self, i):
        ox, oy = i % 64, (i * 7) % 64
        img = self.noise[:, oy:oy + self.size, ox:ox + self.size].clone()
        for box, c in zip(self.boxes[i].int().tolist(), self.labels[i].tolist()):
            img[:, box[1]:box[3], box[0]:box[2]] = self.color[c][:, None, None]
        return img, self.boxes[i], self.labels[i]


def collate(batch):
    images = torch.stack([b[0] for b in batch])
    return images, [b[1] for b in batch], [b[2] for b in batch]


class ConvBN(nn.Sequential):
    def __init__(self, i, o, k=3, s=1):
        super().__init__(nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o, eps=1e-3, momentum=0.03), nn.SiLU(inplace=True))


class CSP(nn.Module):
    def __init__(self, i, o, n, shortcut=True):
        super().__init__()
        h = o // 2
        self.a, self.b = ConvBN(i, h, 1), ConvBN(i, h, 1)
        self.blocks = nn.ModuleList([nn.Sequential(ConvBN(h, h, 1), ConvBN(h, h, 3)) for _ in range(n)])
        self.out, self.shortcut = ConvBN(2 * h, o, 1), shortcut

    def forward(self, x):
        y = self.a(x)
        for blk in self.blocks:
            y = y + blk(y) if self.shortcut else blk(y)
        return self.out(torch.cat([y, self.b(x)], 1))


class Detector(nn.Module):
    def __init__(self, classes, w=48):
        super().__init__()
        self.stem = nn.Sequential(ConvBN(3, w, 3, 2), ConvBN(w, 2 * w, 3, 2), CSP(2 * w, 2 * w, 2))
        self.d3 = nn.Sequential(ConvBN(2 * w, 4 * w, 3, 2), CSP(4 * w, 4 * w, 4))
        self.d4 = nn.Sequential(ConvBN(4 * w, 8 * w, 3, 2), CSP(8 * w, 8 * w, 4))
        self.d5 = nn.Sequential(ConvBN(8 * w, 16 * w, 3, 2), CSP(16 * w, 16 * w, 2))
        self.r5, self.r4 = ConvBN(16 * w, 8 * w, 1), ConvBN(8 * w, 4 * w, 1)
        self.u4, self.u3 = CSP(16 * w, 8 * w, 2, False), CSP(8 * w, 4 * w, 2, False)
        chans = (4 * w, 8 * w, 8 * w)
        self.cls = nn.ModuleList(nn.Sequential(ConvBN(c, 4 * w), ConvBN(4 * w, 4 * w), nn.Conv2d(4 * w, classes, 1)) for c in chans)
        self.reg = nn.ModuleList(nn.Sequential(ConvBN(c, 4 * w), ConvBN(4 * w, 4 * w), nn.Conv2d(4 * w, 4, 1)) for c in chans)
        for m in self.cls:
            nn.init.constant_(m[-1].bias, -math.log(99))

    def forward(self, x):
        c3 = self.d3(self.stem(x))
        c4 = self.d4(c3)
        p5 = self.r5(self.d5(c4))
        p4 = self.u4(torch.cat([F.interpolate(p5, scale_factor=2.0), c4], 1))
        p3 = self.u3(torch.cat([F.interpolate(self.r4(p4), scale_factor=2.0), c3], 1))
        logits, boxes = [], []
        for f, s, ch, rh in zip((p3, p4, p5), STRIDES, self.cls, self.reg):
            h, w = f.shape[2:]
            gy, gx = torch.meshgrid(torch.arange(h, device=x.device), torch.arange(w, device=x.device), indexing="ij")
            centre = (torch.stack([gx, gy], -1).reshape(-1, 2) + 0.5) * s
            d = F.softplus(rh(f).flatten(2).transpose(1, 2).float()) * s
            boxes.append(torch.cat([centre - d[..., :2], centre + d[..., 2:]], -1))
            logits.append(ch(f).flatten(2).transpose(1, 2).float())
        return torch.cat(logits, 1), torch.cat(boxes, 1)


def make_points(size, device):
    pts, rng = [], []
    for s, r in zip(STRIDES, RANGES):
        n = size // s
        gy, gx = torch.meshgrid(torch.arange(n, device=device), torch.arange(n, device=device), indexing="ij")
        pts.append((torch.stack([gx, gy], -1).reshape(-1, 2) + 0.5) * s)
        rng.append(torch.tensor(r, device=device).expand(n * n, 2))
    return torch.cat(pts), torch.cat(rng)


def assign(points, ranges, boxes, labels):
    """FCOS rule: points inside the box whose size suits the level; the smallest box wins."""
    lt = points[:, None] - boxes[None, :, :2]
    rb = boxes[None, :, 2:] - points[:, None]
    d = torch.cat([lt, rb], -1)
    longest = d.amax(-1)
    ok = (d.amin(-1) > 0) & (longest >= ranges[:, :1]) & (longest < ranges[:, 1:])
    area = ((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]))[None].expand(len(points), -1)
    area = torch.where(ok, area, torch.full_like(area, 1e9))
    best, idx = area.min(1)
    pos = best < 1e8
    return pos, idx


def loss_fn(logits, boxes, points, ranges, gt_boxes, gt_labels):
    target = torch.zeros_like(logits)
    box_loss, npos = 0.0, 0
    for b in range(len(gt_boxes)):
        pos, idx = assign(points, ranges, gt_boxes[b], gt_labels[b])
        where = pos.nonzero().squeeze(1)
        target[b, where, gt_labels[b][idx[where]]] = 1
        box_loss = box_loss + generalized_box_iou_loss(boxes[b, where], gt_boxes[b][idx[where]], reduction="sum")
        npos += len(where)
    npos = max(npos, 1)
    cls = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p = logits.detach().sigmoid()
    cls = (cls * (target * (1 - p) + (1 - target) * p) ** 2).sum()
    return (cls + 2 * box_loss) / npos


class EMA:
    def __init__(self, model, decay=0.998):
        self.model, self.decay, self.n = copy.deepcopy(model).eval(), decay, 0

    @torch.no_grad()
    def update(self, model):
        self.n += 1
        d = self.decay * (1 - math.exp(-self.n / 100))
        for (k, v), (_, s) in zip(self.model.state_dict().items(), model.state_dict().items()):
            if v.dtype.is_floating_point:
                v.mul_(d).add_(s, alpha=1 - d)


@torch.no_grad()
def evaluate(model, loader, device):
    hit = total = 0
    for images, gt_boxes, gt_labels in loader:
        with torch.autocast(device.type, torch.bfloat16):
            logits, boxes = model(images.to(device))
        scores, classes = logits.sigmoid().max(-1)
        for b in range(len(images)):
            top = scores[b].topk(min(300, scores.shape[1])).indices
            keep = top[batched_nms(boxes[b, top], scores[b, top], classes[b, top], 0.6)[:100]]
            iou = box_iou(gt_boxes[b].to(device), boxes[b, keep])
            same = gt_labels[b].to(device)[:, None] == classes[b, keep][None]
            hit += int(((iou > 0.5) & same).any(1).sum())
            total += len(gt_boxes[b])
    return hit / total


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=24)
    ap.add_argument("--img", type=int, default=512)
    ap.add_argument("--images", type=int, default=1440)
    ap.add_argument("--width", type=int, default=48)
    ap.add_argument("--epochs", type=int, default=3)
    a = ap.parse_args()
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    train = DataLoader(Shapes(a.images, a.img, 8, 1), a.batch_size, shuffle=True, num_workers=3, collate_fn=collate,
                       pin_memory=dev.type == "cuda", drop_last=True, persistent_workers=True)
    val = DataLoader(Shapes(a.images // 8, a.img, 8, 2), 2 * a.batch_size, num_workers=2, collate_fn=collate)
    net = Detector(8, a.width).to(dev)
    ema = EMA(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.937, nesterov=True, weight_decay=5e-4)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 0.02, total_steps=a.epochs * len(train))
    points, ranges = make_points(a.img, dev)
    for epoch in range(a.epochs):
        net.train()
        running = 0.0
        for images, gb, gl in train:
            images = images.to(dev, non_blocking=True)
            gb, gl = [x.to(dev) for x in gb], [x.to(dev) for x in gl]
            with torch.autocast(dev.type, torch.bfloat16):
                logits, boxes = net(images)
            loss = loss_fn(logits, boxes, points, ranges, gb, gl)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 10)
            opt.step()
            sched.step()
            ema.update(net)
            running += loss.item()
        print(f"epoch {epoch}: loss {running / len(train):.3f} recall {evaluate(ema.model, val, dev):.3f}", flush=True)
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
