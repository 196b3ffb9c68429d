# ViT for 64x64 images with torch.compile, fp16 GradScaler, nesterov/RandAugment-style augment on GPU
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4, drop=0.1):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, mlp_ratio * dim), nn.GELU(), nn.Dropout(drop),
                                 nn.Linear(mlp_ratio * dim, dim), nn.Dropout(drop))
        self.heads = heads
        self.drop = drop

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + F.dropout(self.proj(a.transpose(1, 2).reshape(b, n, c)), self.drop, self.training)
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, size, patch, dim, depth, heads, classes):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, dim) * 0.02)
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.size(0), -1, -1), x], 1) + self.pos
        return self.head(self.norm(self.blocks(x))[:, 0])


def augment(x):
    flip = (torch.rand(x.size(0), 1, 1, 1, device=x.device) < 0.5)
    x = torch.where(flip, x.flip(-1), x)
    x = F.pad(x, (4, 4, 4, 4), mode="reflect")
    i, j = torch.randint(0, 9, (2,)).tolist()
    return x[:, :, i:i + 64, j:j + 64]


def main(args):
    torch.manual_seed(args.seed)
    device = torch.device("cuda")
    g = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (args.images, 3, 64, 64), dtype=torch.uint8, generator=g)
    labels = torch.randint(0, 200, (args.images,), generator=g)
    split = args.images * 9 // 10
    train_dl = DataLoader(TensorDataset(images[:split], labels[:split]), args.batch_size, shuffle=True, drop_last=True,
                          num_workers=4, pin_memory=True)
    val_dl = DataLoader(TensorDataset(images[split:], labels[split:]), args.batch_size, num_workers=2, pin_memory=True)

    model = ViT(64, 4, args.dim, args.depth, 6, 200).to(device)
    model = torch.compile(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs * len(train_dl))
    scaler = torch.amp.GradScaler("cuda")

    def prepare(x):
        return x.to(device, non_blocking=True).float().div_(127.5).sub_(1)

    for epoch in range(args.epochs):
        start = time.time()
        model.train()
        for x, y in train_dl:
            x, y = augment(prepare(x)), y.to(device, non_blocking=True)
            opt.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
            scaler.scale(loss).backward()
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
            sched.step()
        model.eval()
        right = torch.zeros((), device=device)
        with torch.no_grad(), torch.autocast("cuda", dtype=torch.float16):
            for x, y in val_dl:
                right += (model(prepare(x)).argmax(1) == y.to(device)).sum()
        print(f"epoch {epoch} loss {loss.item():.3f} val {100 * right.item() / len(val_dl.dataset):.2f}% {time.time() - start:.1f}s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--depth", type=int, default=9)
    parser.add_argument("--images", type=int, default=20000)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
