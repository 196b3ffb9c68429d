# PointNet++ (multi-scale grouping) part segmentation of synthetic shapes, plain fp32.
import os
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

BATCH = int(os.environ.get("BATCH", 24))
POINTS = int(os.environ.get("POINTS", 2048))
SHAPES = int(os.environ.get("SHAPES", 960))
EPOCHS = int(os.environ.get("EPOCHS", 3))
PARTS = 6
device = "cuda" if torch.cuda.is_available() else "cpu"


def make_shapes(n, seed):
    """A table: a top, four legs and a stretcher, with random proportions; label is the part."""
    g = torch.Generator().manual_seed(seed)
    part = torch.randint(0, PARTS, (n, POINTS), generator=g)
    u = torch.rand(n, POINTS, 3, generator=g)
    wide = 0.5 + 0.5 * torch.rand(n, 1, generator=g)
    tall = 0.5 + 0.7 * torch.rand(n, 1, generator=g)
    x = (u[..., 0] * 2 - 1) * wide
    y = u[..., 1] * 2 - 1
    z = tall + 0.05 * u[..., 2]
    leg = (part >= 1) & (part <= 4)
    sx = torch.where((part == 1) | (part == 2), 1.0, -1.0)
    sy = torch.where((part == 1) | (part == 3), 1.0, -1.0)
    x = torch.where(leg, sx * wide * 0.9 + 0.05 * u[..., 0], x)
    y = torch.where(leg, sy * 0.9 + 0.05 * u[..., 1], y)
    z = torch.where(leg, tall * u[..., 2], z)
    bar = part == 5
    y = torch.where(bar, 0.05 * u[..., 1], y)
    z = torch.where(bar, tall * 0.4 + 0.05 * u[..., 2], z)
    pts = torch.stack([x, y, z], -1) + 0.01 * torch.randn(n, POINTS, 3, generator=g)
    pts = pts - pts.mean(1, keepdim=True)
    pts = pts / pts.norm(dim=-1).amax(1)[:, None, None]
    return pts, part


def gather(points, idx):
    b = torch.arange(points.shape[0], device=points.device).view(-1, *([1] * (idx.dim() - 1)))
    return points[b, idx]


@torch.no_grad()
def farthest_points(xyz, m):
    B, N, _ = xyz.shape
    chosen = torch.zeros(B, m, dtype=torch.long, device=xyz.device)
    dist = torch.full((B, N), 1e10, device=xyz.device)
    last = torch.randint(0, N, (B,), device=xyz.device)
    rows = torch.arange(B, device=xyz.device)
    for i in range(m):
        chosen[:, i] = last
        d = ((xyz - xyz[rows, last][:, None]) ** 2).sum(-1)
        dist = torch.minimum(dist, d)
        last = dist.argmax(1)
    return chosen


@torch.no_grad()
def ball_query(radius, k, xyz, centres):
    B, N, _ = xyz.shape
    sq = torch.cdist(centres, xyz)
    idx = torch.arange(N, device=xyz.device).expand(B, centres.shape[1], N).clone()
    idx[sq > radius] = N
    idx = idx.sort(-1).values[:, :, :k]
    first = idx[:, :, :1].expand(-1, -1, k)
    return torch.where(idx == N, first, idx).clamp(max=N - 1)


class SetAbstraction(nn.Module):
    def __init__(self, m, radii, ks, in_ch, mlps):
        super().__init__()
        self.m, self.radii, self.ks = m, radii, ks
        self.nets = nn.ModuleList()
        for widths in mlps:
            layers, last = [], in_ch + 3
            for w in widths:
                layers += [nn.Conv2d(last, w, 1), nn.BatchNorm2d(w), nn.ReLU()]
                last = w
            self.nets.append(nn.Sequential(*layers))

    def forward(self, xyz, feat):
        centres = gather(xyz, farthest_points(xyz, self.m))
        out = []
        for r, k, net in zip(self.radii, self.ks, self.nets):
            idx = ball_query(r, k, xyz, centres)
            grouped = gather(xyz, idx) - centres[:, :, None]
            if feat is not None:
                grouped = torch.cat([grouped, gather(feat, idx)], -1)
            out.append(net(grouped.permute(0, 3, 1, 2)).amax(-1))
        return centres, torch.cat(out, 1).transpose(1, 2)


class Propagation(nn.Module):
    def __init__(self, in_ch, widths):
        super().__init__()
        layers = []
        for w in widths:
            layers += [nn.Conv1d(in_ch, w, 1), nn.BatchNorm1d(w), nn.ReLU()]
            in_ch = w
        self.net = nn.Sequential(*layers)

    def forward(self, xyz1, xyz2, f1, f2):
        d, idx = torch.cdist(xyz1, xyz2).topk(3, dim=-1, largest=False)
        w = 1 / (d + 1e-8)
        w = w / w.sum(-1, keepdim=True)
        f = (gather(f2, idx) * w[..., None]).sum(2)
        if f1 is not None:
            f = torch.cat([f1, f], -1)
        return self.net(f.transpose(1, 2)).transpose(1, 2)


class PartNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.sa1 = SetAbstraction(512, [0.1, 0.2, 0.4], [32, 64, 96], 0, [[32, 32, 64], [64, 64, 128], [64, 96, 128]])
        self.sa2 = SetAbstraction(128, [0.4, 0.8], [48, 96], 320, [[128, 128, 256], [128, 196, 256]])
        self.top = nn.Sequential(nn.Conv1d(515, 256, 1), nn.BatchNorm1d(256), nn.ReLU(), nn.Conv1d(256, 1024, 1), nn.ReLU())
        self.fp2 = Propagation(512 + 1024, [256, 256])
        self.fp1 = Propagation(320 + 256, [256, 128])
        self.fp0 = Propagation(3 + 128, [128, 128])
        self.head = nn.Sequential(nn.Conv1d(128, 128, 1), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.5), nn.Conv1d(128, PARTS, 1))

    def forward(self, xyz):
        x1, f1 = self.sa1(xyz, None)
        x2, f2 = self.sa2(x1, f1)
        g = self.top(torch.cat([x2, f2], -1).transpose(1, 2)).amax(2)
        f2 = self.fp2.net(torch.cat([f2, g[:, None].expand(-1, x2.shape[1], -1)], -1).transpose(1, 2)).transpose(1, 2)
        f1 = self.fp1(x1, x2, f1, f2)
        f0 = self.fp0(xyz, x1, xyz, f1)
        return self.head(f0.transpose(1, 2))


def mean_iou(pred, true):
    scores = []
    for c in range(PARTS):
        inter, union = ((pred == c) & (true == c)).sum(), ((pred == c) | (true == c)).sum()
        if union > 0:
            scores.append(inter / union)
    return float(np.mean(scores))


torch.manual_seed(0)
train_loader = DataLoader(TensorDataset(*make_shapes(SHAPES, 1)), batch_size=BATCH, shuffle=True, drop_last=True)
test_loader = DataLoader(TensorDataset(*make_shapes(SHAPES // 8, 2)), batch_size=BATCH)
model = PartNet().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.7)
best = 0.0
for epoch in range(EPOCHS):
    model.train()
    for step, (pts, lab) in enumerate(train_loader):
        pts, lab = pts.to(device), lab.to(device)
        scale = torch.empty(len(pts), 1, 1, device=device).uniform_(0.8, 1.25)
        pts = pts * scale + torch.empty(len(pts), 1, 3, device=device).uniform_(-0.1, 0.1)
        loss = F.cross_entropy(model(pts), lab)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(epoch, step, loss.item(), flush=True)
    scheduler.step()
    model.eval()
    preds, trues = [], []
    with torch.no_grad():
        for pts, lab in test_loader:
            preds.append(model(pts.to(device)).argmax(1).cpu())
            trues.append(lab)
    iou = mean_iou(torch.cat(preds).numpy(), torch.cat(trues).numpy())
    best = max(best, iou)
    print("epoch", epoch, "mIoU", round(iou, 4), "best", round(best, 4))

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
