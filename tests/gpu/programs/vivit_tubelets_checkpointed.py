# SPDX-License-Identifier: Apache-2.0
"""Video classification: factorised ViViT with tubelet embedding, torch.utils.checkpoint per block, bf16 autocast; validation averages several clips per video, top-1 and a list of predictions."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"


class Videos(Dataset):
    """Training: one clip per video. Testing: `views` clips, evenly spaced."""

    def __init__(self, n, frames, size, classes, views=1):
        self.n, self.frames, self.size, self.classes, self.views = n, frames, size, classes, views

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        shape = (3, self.frames, self.size, self.size)
        clips = torch.stack([torch.randint(0, 256, shape, dtype=torch.uint8) for _ in range(self.views)])
        return (clips if self.views > 1 else clips[0]), i % self.classes


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(dim, dim * 3), nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, dim, heads, ratio=4):
        super().__init__()
        self.n1, self.attn = nn.LayerNorm(dim), Attention(dim, heads)
        self.n2, self.mlp = nn.LayerNorm(dim), nn.Sequential(nn.Linear(dim, dim * ratio), nn.GELU(), nn.Dropout(0.1), nn.Linear(dim * ratio, dim))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class ViViT(nn.Module):
    def __init__(self, frames, size, classes, tubelet=(2, 16, 16), dim=768, spatial=12, temporal=4, heads=12):
        super().__init__()
        self.t, self.s = frames // tubelet[0], (size // tubelet[1]) ** 2
        self.embed = nn.Conv3d(3, dim, tubelet, tubelet)
        self.pos = nn.Parameter(torch.randn(1, self.s + 1, dim) * 0.02)
        self.tpos = nn.Parameter(torch.randn(1, self.t + 1, dim) * 0.02)
        self.scls, self.tcls = nn.Parameter(torch.zeros(1, 1, dim)), nn.Parameter(torch.zeros(1, 1, dim))
        self.spatial = nn.ModuleList(Block(dim, heads) for _ in range(spatial))
        self.temporal = nn.ModuleList(Block(dim, heads) for _ in range(temporal))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def run(self, blocks, x):
        for blk in blocks:
            x = checkpoint(blk, x, use_reentrant=False) if self.training else blk(x)
        return x

    def forward(self, v):
        b = v.shape[0]
        x = self.embed(v).flatten(3).permute(0, 2, 3, 1).reshape(b * self.t, self.s, -1)
        x = torch.cat([self.scls.expand(len(x), -1, -1), x], 1) + self.pos
        x = self.run(self.spatial, x)[:, 0].view(b, self.t, -1)
        x = torch.cat([self.tcls.expand(b, -1, -1), x], 1) + self.tpos
        x = self.run(self.temporal, x)[:, 0]
        return self.head(self.norm(x))


def normalise(clip):
    return clip.to(device, non_blocking=True).float().div_(127.5).sub_(1)


def test(model, loader):
    model.eval()
    predictions, labels = [], []
    with torch.inference_mode():
        for clips, y in loader:
            b, views = clips.shape[:2]
            x = normalise(clips.flatten(0, 1))
            with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
                scores = model(x).float().softmax(-1).view(b, views, -1).mean(1)
            predictions.extend(scores.argmax(-1).tolist())
            labels.extend(y.tolist())
    return sum(p == l for p, l in zip(predictions, labels)) / len(labels)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--views", type=int, default=3)
    p.add_argument("--epochs", type=int, default=2)
    a = p.parse_args()
    torch.manual_seed(0)
    if SMALL:
        a.batch_size = min(a.batch_size, 2)
    frames, size, classes = (4, 32, 5) if SMALL else (16, 224, 174)
    workers = 0 if SMALL else 8
    train = DataLoader(Videos(a.batch_size * (2 if SMALL else 6), frames, size, classes), a.batch_size, shuffle=True, drop_last=True, num_workers=workers, pin_memory=device == "cuda")
    val = DataLoader(Videos(a.batch_size * 2, frames, size, classes, a.views), a.batch_size, num_workers=workers, pin_memory=device == "cuda")
    model = (ViViT(frames, size, classes, dim=48, spatial=2, temporal=1, heads=4) if SMALL else ViViT(frames, size, classes)).to(device)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=a.epochs)
    for epoch in range(a.epochs):
        model.train()
        for clip, y in tqdm(train, disable=None):
            x, y = normalise(clip), y.to(device)
            with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
                loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        sched.step()
        print(f"epoch {epoch} loss {loss.item():.4f} top-1 {test(model, val):.4f}")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
