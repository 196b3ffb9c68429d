# SPDX-License-Identifier: Apache-2.0
# vessel segmentation: train on patches, validate with a sliding window over whole images (nnU-Net like)
import argparse
import os
import shutil
import tempfile
from itertools import product

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
PATCH = 64 if SMALL else 256
IMG = (128, 160) if SMALL else (1024, 1280)


def conv_block(i, o, stride=1):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, stride, 1), nn.InstanceNorm2d(o, affine=True), nn.LeakyReLU(0.01, inplace=True),
        nn.Conv2d(o, o, 3, 1, 1), nn.InstanceNorm2d(o, affine=True), nn.LeakyReLU(0.01, inplace=True))


class UNet(nn.Module):
    def __init__(self, cin, classes, base, depth):
        super().__init__()
        ch = [min(base * 2 ** i, 512) for i in range(depth)]
        self.enc = nn.ModuleList([conv_block(cin if i == 0 else ch[i - 1], c, 1 if i == 0 else 2) for i, c in enumerate(ch)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(ch[i], ch[i - 1], 2, 2) for i in range(depth - 1, 0, -1)])
        self.dec = nn.ModuleList([conv_block(2 * ch[i - 1], ch[i - 1]) for i in range(depth - 1, 0, -1)])
        self.heads = nn.ModuleList([nn.Conv2d(ch[i - 1], classes, 1) for i in range(depth - 1, 0, -1)])

    def forward(self, x):
        skips = []
        for e in self.enc:
            x = e(x)
            skips.append(x)
        outs = []
        for i, (u, d) in enumerate(zip(self.up, self.dec)):
            x = d(torch.cat([u(x), skips[-2 - i]], 1))
            outs.append(self.heads[i](x))
        return outs[::-1] if self.training else outs[-1]


class Patches(Dataset):
    def __init__(self, images, masks, n):
        self.images, self.masks, self.n = images, masks, n

    def __len__(self):
        return self.n

    def __getitem__(self, _):
        k = np.random.randint(len(self.images))
        y, x = np.random.randint(IMG[0] - PATCH), np.random.randint(IMG[1] - PATCH)
        im, m = self.images[k, :, y:y + PATCH, x:x + PATCH], self.masks[k, y:y + PATCH, x:x + PATCH]
        if np.random.rand() < 0.5:
            im, m = im.flip(-1), m.flip(-1)
        return im.contiguous(), m.contiguous()


def dice_ce(logits, target):
    ce = nn.functional.cross_entropy(logits, target)
    p = logits.softmax(1)
    t = nn.functional.one_hot(target, logits.shape[1]).permute(0, 3, 1, 2).to(p.dtype)
    inter, den = (p * t).sum((0, 2, 3)), (p + t).sum((0, 2, 3))
    return ce + 1 - (2 * inter / (den + 1e-5)).mean()


def gaussian(size):
    a = torch.arange(size, device=device) - (size - 1) / 2
    g = torch.exp(-(a ** 2) / (2 * (size / 8) ** 2))
    return (g[:, None] * g[None]).clamp(min=1e-3)


@torch.no_grad()
def sliding_window(model, image, classes, sw_batch=8, overlap=0.5):
    _, _, H, W = image.shape
    step = int(PATCH * (1 - overlap))
    ys = list(range(0, H - PATCH, step)) + [H - PATCH]
    xs = list(range(0, W - PATCH, step)) + [W - PATCH]
    weight = gaussian(PATCH)
    out = torch.zeros(1, classes, H, W, device=device)
    count = torch.zeros(1, 1, H, W, device=device)
    coords = list(product(ys, xs))
    for i in range(0, len(coords), sw_batch):
        part = coords[i:i + sw_batch]
        crops = torch.cat([image[:, :, y:y + PATCH, x:x + PATCH] for y, x in part])
        with torch.autocast(device, torch.float16, enabled=device == "cuda"):
            pred = model(crops)
        pred = pred.float().softmax(1) * weight
        for p, (y, x) in zip(pred, part):
            out[0, :, y:y + PATCH, x:x + PATCH] += p
            count[0, 0, y:y + PATCH, x:x + PATCH] += weight
    return out / count


parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=16)
opt = parser.parse_args()
torch.manual_seed(0)
np.random.seed(0)
classes = 3
images = torch.randn(3, 1, *IMG)
masks = (images[:, 0] > 0.5).long() + (images[:, 0] > 1.5).long()
train_loader = DataLoader(Patches(images[:2], masks[:2], opt.batch_size * (2 if SMALL else 8)), batch_size=opt.batch_size, num_workers=0 if SMALL else 2)
model = UNet(1, classes, 8 if SMALL else 48, 4 if SMALL else 6).to(device)
optimizer = torch.optim.SGD(model.parameters(), 1e-2, momentum=0.99, nesterov=True, weight_decay=3e-5)
scaler = torch.amp.GradScaler(device, enabled=device == "cuda")
best, ckpt_dir = -1.0, tempfile.mkdtemp()
for epoch in range(2):
    model.train()
    for x, y in train_loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        with torch.autocast(device, torch.float16, enabled=device == "cuda"):
            outs = model(x)
            loss = 0
            for k, o in enumerate(outs):  # deep supervision
                loss = loss + 0.5 ** k * dice_ce(o.float(), y[:, ::2 ** k, ::2 ** k])
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 12)
        scaler.step(optimizer)
        scaler.update()
    model.eval()
    pred = sliding_window(model, images[2:].to(device), classes).argmax(1)
    gt = masks[2:].to(device)
    dice = [(2 * ((pred == c) & (gt == c)).sum() / ((pred == c).sum() + (gt == c).sum()).clamp(min=1)).item() for c in range(1, classes)]
    print(epoch, loss.item(), dice)
    if np.mean(dice) > best:
        best = np.mean(dice)
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, os.path.join(ckpt_dir, "best.pth"))
shutil.rmtree(ckpt_dir)
if torch.cuda.is_available():
    s = torch.cuda.memory_stats()
    print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
