"""PointPillars on synthetic lidar sweeps: hard voxels on the CPU, PFN, scatter, SECOND backbone, anchor head (fp32)."""
import argparse
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

RANGE = np.array([0, -39.68, -3, 69.12, 39.68, 1], np.float32)
VOXEL = np.array([0.16, 0.16, 4], np.float32)
MAX_PTS, MAX_PILLARS = 32, 12000
GRID = (432, 496)
CLASSES = {0: 'Pedestrian', 1: 'Cyclist', 2: 'Car'}
SIZES = torch.tensor([[0.6, 0.8, 1.73], [0.6, 1.76, 1.73], [1.6, 3.9, 1.56]])


def voxelize(points):
    c = ((points[:, :2] - RANGE[:2]) / VOXEL[:2]).astype(np.int64)
    keep = (c[:, 0] >= 0) & (c[:, 0] < GRID[0]) & (c[:, 1] >= 0) & (c[:, 1] < GRID[1])
    points, c = points[keep], c[keep]
    key = c[:, 0] * GRID[1] + c[:, 1]
    order = np.argsort(key, kind='stable')
    key, points, c = key[order], points[order], c[order]
    uniq, start, counts = np.unique(key, return_index=True, return_counts=True)
    uniq, start, counts = uniq[:MAX_PILLARS], start[:MAX_PILLARS], counts[:MAX_PILLARS]
    vox = np.zeros((len(uniq), MAX_PTS, 4), np.float32)
    pid = np.searchsorted(uniq, key)
    pid = np.clip(pid, 0, len(uniq) - 1)
    pos = np.arange(len(key)) - start[pid]
    ok = (pos < MAX_PTS) & (uniq[pid] == key)
    vox[pid[ok], pos[ok]] = points[ok]
    coors = np.stack([uniq // GRID[1], uniq % GRID[1]], 1)
    return vox, coors, np.minimum(counts, MAX_PTS)


class Kitti(Dataset):
    def __init__(self, n, n_points, seed):
        self.n, self.n_points, self.seed = n, n_points, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng(self.seed + i)
        k = int(rng.integers(3, 15))
        n = int(self.n_points * rng.uniform(0.7, 1.1))
        r = 60 * rng.random(n) ** 1.5 + 2
        th = rng.uniform(-0.7, 0.7, n)
        pts = np.stack([r * np.cos(th), r * np.sin(th), rng.normal(-1.6, 0.1, n), rng.random(n)], 1).astype(np.float32)
        labels = rng.integers(0, 3, k)
        boxes = np.zeros((k, 7), np.float32)
        for j in range(k):
            x, y = rng.uniform(5, 55), rng.uniform(-25, 25)
            w, l, h = SIZES[labels[j]].numpy() * rng.uniform(0.9, 1.1)
            boxes[j] = x, y, -0.9, w, l, h, rng.uniform(-np.pi, np.pi)
            obj = rng.uniform(-0.5, 0.5, (150, 3)) * np.array([l, w, h]) + boxes[j, :3]
            pts = np.concatenate([pts, np.c_[obj, np.full(150, 0.5)].astype(np.float32)])
        vox, coors, npts = voxelize(pts)
        return torch.from_numpy(vox), torch.from_numpy(coors), torch.from_numpy(npts), torch.from_numpy(boxes), torch.from_numpy(labels)


def collate(batch):
    vox = torch.cat([b[0] for b in batch])
    coors = torch.cat([F.pad(b[1], (1, 0), value=i) for i, b in enumerate(batch)])
    npts = torch.cat([b[2] for b in batch])
    return vox, coors, npts, [b[3] for b in batch], [b[4] for b in batch]


class PillarEncoder(nn.Module):
    def __init__(self, out=64):
        super().__init__()
        self.conv = nn.Conv1d(9, out, 1, bias=False)
        self.bn = nn.BatchNorm1d(out, eps=1e-3, momentum=0.01)
        self.out = out

    def forward(self, pillars, coors, npoints):
        device = pillars.device
        mean = pillars[:, :, :3].sum(1, keepdim=True) / npoints[:, None, None]
        offset = pillars[:, :, :3] - mean
        cx = coors[:, None, 1:2] * VOXEL[0] + VOXEL[0] / 2 + RANGE[0]
        cy = coors[:, None, 2:3] * VOXEL[1] + VOXEL[1] / 2 + RANGE[1]
        feats = torch.cat([pillars, offset, pillars[:, :, 0:1] - cx, pillars[:, :, 1:2] - cy], -1)
        mask = (torch.arange(pillars.size(1), device=device)[:, None] < npoints[None, :]).permute(1, 0)
        feats = feats * mask[:, :, None]
        feats = F.relu(self.bn(self.conv(feats.permute(0, 2, 1).contiguous())))
        pooled = torch.max(feats, dim=-1)[0]
        canvas = []
        for i in range(int(coors[-1, 0].item()) + 1):
            cur = coors[:, 0] == i
            c = torch.zeros(GRID[0], GRID[1], self.out, dtype=torch.float32, device=device)
            c[coors[cur, 1].long(), coors[cur, 2].long()] = pooled[cur]
            canvas.append(c.permute(2, 1, 0).contiguous())
        return torch.stack(canvas)


class Backbone(nn.Module):
    def __init__(self, i=64, outs=(64, 128, 256), nums=(3, 5, 5)):
        super().__init__()
        self.blocks = nn.ModuleList()
        for o, n in zip(outs, nums):
            layers = []
            for k in range(n + 1):
                layers += [nn.Conv2d(i, o, 3, 2 if k == 0 else 1, padding=1, bias=False), nn.BatchNorm2d(o, eps=1e-3, momentum=0.01),
                           nn.ReLU(inplace=True)]
                i = o
            self.blocks.append(nn.Sequential(*layers))
        self.deblocks = nn.ModuleList(nn.Sequential(nn.ConvTranspose2d(o, 128, s, stride=s, bias=False),
                                                    nn.BatchNorm2d(128, eps=1e-3, momentum=0.01), nn.ReLU(inplace=True))
                                      for o, s in zip(outs, (1, 2, 4)))

    def forward(self, x):
        outs = []
        for b, d in zip(self.blocks, self.deblocks):
            x = b(x)
            outs.append(d(x))
        return torch.cat(outs, 1)


class PointPillars(nn.Module):
    def __init__(self, nclasses=3, n_anchors=6):
        super().__init__()
        self.encoder, self.backbone = PillarEncoder(), Backbone()
        self.conv_cls = nn.Conv2d(384, n_anchors * nclasses, 1)
        self.conv_reg = nn.Conv2d(384, n_anchors * 7, 1)
        self.conv_dir = nn.Conv2d(384, n_anchors * 2, 1)
        nn.init.constant_(self.conv_cls.bias, -4.6)

    def forward(self, vox, coors, npts):
        x = self.backbone(self.encoder(vox, coors, npts))
        b = x.shape[0]
        p = lambda t, k: t.permute(0, 2, 3, 1).reshape(b, -1, k)
        return p(self.conv_cls(x), 3), p(self.conv_reg(x), 7), p(self.conv_dir(x), 2)


def make_anchors(device):
    h, w = GRID[1] // 2, GRID[0] // 2
    ys = torch.linspace(RANGE[1] + 0.16, RANGE[4] - 0.16, h, device=device)
    xs = torch.linspace(RANGE[0] + 0.16, RANGE[3] - 0.16, w, device=device)
    yy, xx = torch.meshgrid(ys, xs, indexing='ij')
    anchors = []
    for k in range(3):
        for rot in (0.0, 1.57):
            rest = torch.tensor([-0.9, *SIZES[k].tolist(), rot], device=device).expand(h, w, 5)
            anchors.append(torch.cat([xx[..., None], yy[..., None], rest], -1))
    a = torch.stack(anchors, 2)
    cls = torch.arange(3, device=device).repeat_interleave(2).expand(h, w, 6)
    return a.reshape(-1, 7), cls.reshape(-1)


def nearest_bev_iou(a, b):
    def corners(x):
        rot = (x[:, 6] % np.pi - np.pi / 2).abs() < np.pi / 4
        w, l = torch.where(rot, x[:, 4], x[:, 3]), torch.where(rot, x[:, 3], x[:, 4])
        return x[:, 0] - l / 2, x[:, 1] - w / 2, x[:, 0] + l / 2, x[:, 1] + w / 2
    ax0, ay0, ax1, ay1 = (t[:, None] for t in corners(a))
    bx0, by0, bx1, by1 = (t[None] for t in corners(b))
    inter = (torch.min(ax1, bx1) - torch.max(ax0, bx0)).clamp(min=0) * (torch.min(ay1, by1) - torch.max(ay0, by0)).clamp(min=0)
    return inter / ((ax1 - ax0) * (ay1 - ay0) + (bx1 - bx0) * (by1 - by0) - inter)


@torch.no_grad()
def assign(anchors, acls, boxes, labels):
    n = len(anchors)
    cls_t = torch.full((n,), 3, dtype=torch.long, device=anchors.device)
    reg_t = torch.zeros(n, 7, device=anchors.device)
    iou = nearest_bev_iou(anchors, boxes)
    iou = iou * (acls[:, None] == labels[None])
    best, arg = iou.max(1)
    pos = best > 0.5
    pos[iou.argmax(0)] = True
    g, a = boxes[arg[pos]], anchors[pos]
    diag = torch.sqrt(a[:, 3] ** 2 + a[:, 4] ** 2)
    reg_t[pos] = torch.stack([(g[:, 0] - a[:, 0]) / diag, (g[:, 1] - a[:, 1]) / diag, (g[:, 2] - a[:, 2]) / a[:, 5],
                              torch.log(g[:, 3] / a[:, 3]), torch.log(g[:, 4] / a[:, 4]), torch.log(g[:, 5] / a[:, 5]),
                              g[:, 6] - a[:, 6]], 1)
    cls_t[pos] = labels[arg[pos]]
    return cls_t, reg_t, pos, (boxes[arg][:, 6] > 0).long()


def loss_fn(cls, reg, dirp, anchors, acls, boxes, labels):
    t = [assign(anchors, acls, b, l) for b, l in zip(boxes, labels)]
    cls_t, reg_t, pos, dir_t = (torch.stack(x) for x in zip(*t))
    n = pos.sum().clamp(min=1)
    onehot = F.one_hot(cls_t, 4)[..., :3].float()
    p = cls.sigmoid()
    pt = (1 - p) * onehot + p * (1 - onehot)
    focal = (0.25 * onehot + 0.75 * (1 - onehot)) * pt.pow(2)
    cls_loss = (F.binary_cross_entropy_with_logits(cls, onehot, reduction='none') * focal).sum() / n
    rp, rt = reg[pos], reg_t[pos]
    rp6 = torch.sin(rp[:, 6:]) * torch.cos(rt[:, 6:])
    rt6 = torch.cos(rp[:, 6:]) * torch.sin(rt[:, 6:])
    reg_loss = F.smooth_l1_loss(torch.cat([rp[:, :6], rp6], 1), torch.cat([rt[:, :6], rt6], 1), beta=1 / 9, reduction='sum') / n
    dir_loss = F.cross_entropy(dirp[pos], dir_t[pos], reduction='sum') / n
    return cls_loss + 2 * reg_loss + 0.2 * dir_loss, cls_loss, reg_loss, dir_loss


def main(a):
    torch.manual_seed(0)
    device = "cuda"
    out = tempfile.mkdtemp()
    train = DataLoader(Kitti(a.n, a.points, 0), a.batch_size, shuffle=True, num_workers=2, drop_last=True, collate_fn=collate)
    val = DataLoader(Kitti(max(a.n // 8, 1), a.points, 10 ** 6), a.batch_size, num_workers=1, collate_fn=collate)
    model = PointPillars().to(device)
    anchors, acls = make_anchors(device)
    opt = torch.optim.AdamW(model.parameters(), lr=a.lr, betas=(0.95, 0.99), weight_decay=0.01)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=a.lr * 10, total_steps=len(train) * a.epochs, pct_start=0.4,
                                                base_momentum=0.85, max_momentum=0.95, div_factor=10)
    writer = SummaryWriter(os.path.join(out, 'summary'))
    step = 0
    for epoch in range(a.epochs):
        model.train()
        for vox, coors, npts, boxes, labels in tqdm(train, desc=f'epoch {epoch}'):
            vox, coors, npts = vox.to(device), coors.to(device), npts.to(device)
            boxes, labels = [b.to(device) for b in boxes], [l.to(device) for l in labels]
            opt.zero_grad()
            loss, c, r, d = loss_fn(*model(vox, coors, npts), anchors, acls, boxes, labels)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=35)
            opt.step()
            sched.step()
            step += 1
            if step % 8 == 0:
                for k, v in (('loss', loss), ('cls', c), ('reg', r), ('dir', d)):
                    writer.add_scalar('train/' + k, v.item(), step)
        model.eval()
        tot = 0.0
        with torch.no_grad():
            for vox, coors, npts, boxes, labels in val:
                boxes, labels = [b.to(device) for b in boxes], [l.to(device) for l in labels]
                outs = model(vox.to(device), coors.to(device), npts.to(device))
                tot += loss_fn(*outs, anchors, acls, boxes, labels)[0].item()
        print(f'epoch {epoch} train {loss.item():.3f} val {tot / len(val):.3f}')
        torch.save(model.state_dict(), os.path.join(out, f'epoch_{epoch + 1}.pth'))
    writer.close()


if __name__ == '__main__':
    p = argparse.ArgumentParser()
    p.add_argument('--batch_size', type=int, default=6)
    p.add_argument('--n', type=int, default=180)
    p.add_argument('--points', type=int, default=20000)
    p.add_argument('--lr', type=float, default=0.00025)
    p.add_argument('--epochs', type=int, default=2)
    main(p.parse_args())
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
