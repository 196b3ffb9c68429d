# SPDX-License-Identifier: Apache-2.0
"""Metric learning: Proxy-Anchor loss on a timm ViT-small embedding, balanced PK sampler, fp16 GradScaler, proxies at 100x lr; recall@K with all embeddings on the GPU."""
import argparse
import os
import random

import timm
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, Sampler

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"


class Products(Dataset):
    def __init__(self, classes, per_class, size, first=0):
        self.labels = [first + c for c in range(classes) for _ in range(per_class)]
        self.size = size

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.labels[i])
        proto = torch.randn(3, 1, 1, generator=g)
        return torch.randn(3, self.size, self.size) + proto, self.labels[i]


class PKSampler(Sampler):
    """P classes times K pictures for each batch."""

    def __init__(self, labels, batch_size, k, steps):
        self.k, self.p, self.steps = k, batch_size // k, steps
        self.by_class = {}
        for i, l in enumerate(labels):
            self.by_class.setdefault(l, []).append(i)

    def __iter__(self):
        for _ in range(self.steps):
            batch = []
            for c in random.sample(list(self.by_class), self.p):
                batch += random.choices(self.by_class[c], k=self.k)
            yield batch

    def __len__(self):
        return self.steps


class ProxyAnchor(nn.Module):
    def __init__(self, classes, dim, margin=0.1, alpha=32):
        super().__init__()
        self.proxies = nn.Parameter(torch.randn(classes, dim))
        nn.init.kaiming_normal_(self.proxies, mode="fan_out")
        self.classes, self.margin, self.alpha = classes, margin, alpha

    def forward(self, x, y):
        cos = F.linear(F.normalize(x.float()), F.normalize(self.proxies))
        pos = F.one_hot(y, self.classes).bool()
        pos_exp = torch.where(pos, torch.exp(-self.alpha * (cos - self.margin)), torch.zeros_like(cos)).sum(0)
        neg_exp = torch.where(pos, torch.zeros_like(cos), torch.exp(self.alpha * (cos + self.margin))).sum(0)
        valid = pos.any(0).sum()
        return torch.log1p(pos_exp).sum() / valid + torch.log1p(neg_exp).sum() / self.classes


class Embedder(nn.Module):
    def __init__(self, name, size, dim):
        super().__init__()
        self.trunk = timm.create_model(name, pretrained=False, num_classes=0, img_size=size)
        self.fc = nn.Linear(self.trunk.num_features, dim)

    def forward(self, x):
        return self.fc(self.trunk(x))


@torch.no_grad()
def evaluate(model, loader, ks=(1, 2, 4, 8)):
    model.eval()
    emb, lab = [], []
    for x, y in loader:
        with torch.amp.autocast(device, dtype=torch.float16, enabled=device == "cuda"):
            emb.append(F.normalize(model(x.to(device)).float()))
        lab.append(y.to(device))
    emb, lab = torch.cat(emb), torch.cat(lab)
    sim = emb @ emb.T
    sim.fill_diagonal_(-1)
    nearest = lab[sim.topk(max(ks), dim=1).indices]
    return {k: (nearest[:, :k] == lab[:, None]).any(1).float().mean().item() for k in ks}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=120)
    parser.add_argument("--images-per-class", type=int, default=4)
    parser.add_argument("--embedding", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    random.seed(0)
    if SMALL:
        args.batch_size, args.embedding = min(args.batch_size, 8), 16
    args.batch_size = max(args.batch_size // args.images_per_class, 1) * args.images_per_class
    size = 32 if SMALL else 224
    classes = max(args.batch_size // args.images_per_class, 4 if SMALL else 100)
    train_set = Products(classes, 6, size)
    test_set = Products(20 if SMALL else 100, 2 if SMALL else 8, size, first=100000)
    workers = 0 if SMALL else 8
    train = DataLoader(train_set, batch_sampler=PKSampler(train_set.labels, args.batch_size, args.images_per_class, 2 if SMALL else 8), num_workers=workers, pin_memory=device == "cuda")
    test = DataLoader(test_set, batch_size=args.batch_size, num_workers=workers, pin_memory=device == "cuda")
    model = Embedder("vit_tiny_patch16_224" if SMALL else "vit_small_patch16_224", size, args.embedding).to(device)
    criterion = ProxyAnchor(classes, args.embedding).to(device)
    optimizer = torch.optim.AdamW([
        {"params": model.trunk.parameters(), "lr": 1e-5},
        {"params": model.fc.parameters(), "lr": 1e-4},
        {"params": criterion.parameters(), "lr": 1e-2},
    ], weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.5)
    scaler = torch.amp.GradScaler(device, enabled=device == "cuda")
    best = 0.0
    for epoch in range(args.epochs):
        model.train()
        losses = []
        for x, y in train:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            with torch.amp.autocast(device, dtype=torch.float16, enabled=device == "cuda"):
                e = model(x)
            loss = criterion(e, y)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_value_(model.parameters(), 10)
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        scheduler.step()
        recall = evaluate(model, test)
        best = max(best, recall[1])
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f}", " ".join(f"R@{k} {v:.3f}" for k, v in recall.items()), f"best {best:.3f}")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
