import argparse
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2


class PatternImages(Dataset):
    """Classes are low-frequency patterns; images are kept as bytes and augmented when read."""

    def __init__(self, n, size, classes, seed, transform, two_views):
        g = torch.Generator().manual_seed(seed)
        base = torch.rand(classes, 3, 8, 8, generator=torch.Generator().manual_seed(99))
        self.labels = torch.randint(0, classes, (n,), generator=g)
        noise = torch.rand(n, 3, 8, 8, generator=g)
        self.small = 0.6 * base[self.labels] + 0.4 * noise
        self.size, self.transform, self.two_views = size, transform, two_views

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = F.interpolate(self.small[i:i + 1], size=self.size, mode="bilinear", align_corners=False)[0]
        if self.two_views:
            return self.transform(img), self.transform(img), self.labels[i]
        return self.transform(img), self.labels[i]


class MoCo(nn.Module):
    def __init__(self, arch, dim=128, queue=65536, m=0.99, t=0.2):
        super().__init__()
        self.encoder_q = getattr(torchvision.models, arch)(num_classes=dim)
        width = self.encoder_q.fc.in_features
        self.encoder_q.fc = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, dim))
        self.encoder_k = copy.deepcopy(self.encoder_q)
        for p in self.encoder_k.parameters():
            p.requires_grad = False
        self.m, self.t = m, t
        self.register_buffer("queue", F.normalize(torch.randn(dim, queue), dim=0))
        self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def momentum_update(self):
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            k.mul_(self.m).add_(q, alpha=1 - self.m)

    @torch.no_grad()
    def enqueue(self, keys):
        ptr, n = int(self.ptr), len(keys)
        room = self.queue.shape[1] - ptr
        if n > room:
            keys, n = keys[:room], room
        self.queue[:, ptr:ptr + n] = keys.t().to(self.queue.dtype)
        self.ptr[0] = (ptr + n) % self.queue.shape[1]

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q).float(), dim=1)
        with torch.no_grad():
            self.momentum_update()
            order = torch.randperm(len(im_k), device=im_k.device)
            k = F.normalize(self.encoder_k(im_k[order]).float(), dim=1)[order.argsort()]
        pos = (q * k).sum(1, keepdim=True)
        neg = q @ self.queue.clone().detach()
        logits = torch.cat([pos, neg], 1) / self.t
        self.enqueue(k)
        return logits


@torch.no_grad()
def knn_accuracy(model, bank_loader, test_loader, device, classes, k=20):
    backbone = model.encoder_q
    head, backbone.fc = backbone.fc, nn.Identity()
    backbone.eval()

    def embed(loader):
        feats, labels = [], []
        for x, y in loader:
            with torch.autocast(device.type, dtype=torch.float16):
                feats.append(F.normalize(backbone(x.to(device)).float(), dim=1))
            labels.append(y.to(device))
        return torch.cat(feats), torch.cat(labels)

    bank, bank_y = embed(bank_loader)
    test, test_y = embed(test_loader)
    backbone.fc = head
    model.train()
    sim, idx = (test @ bank.t()).topk(min(k, len(bank)), dim=1)
    votes = torch.zeros(len(test), classes, device=device).scatter_add_(1, bank_y[idx], (sim / 0.07).exp())
    return (votes.argmax(1) == test_y).float().mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--arch", default="resnet50")
    ap.add_argument("--batch-size", type=int, default=128)
    ap.add_argument("--size", type=int, default=160)
    ap.add_argument("--images", type=int, default=2560)
    ap.add_argument("--queue", type=int, default=65536)
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--workers", type=int, default=4)
    args = ap.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    norm = v2.Normalize([0.5] * 3, [0.25] * 3)
    aug = v2.Compose([v2.RandomResizedCrop(args.size, scale=(0.2, 1.0), antialias=False), v2.RandomHorizontalFlip(),
                      v2.RandomGrayscale(0.2), v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.2, 0.0)], p=0.5), norm])
    classes = 20
    loader = DataLoader(PatternImages(args.images, args.size, classes, 1, aug, True), args.batch_size, shuffle=True,
                        num_workers=args.workers, drop_last=True, pin_memory=device.type == "cuda")
    bank = DataLoader(PatternImages(args.images // 4, args.size, classes, 1, norm, False), 256, num_workers=args.workers)
    test = DataLoader(PatternImages(args.images // 8, args.size, classes, 2, norm, False), 256, num_workers=args.workers)
    model = MoCo(args.arch, queue=args.queue).to(device)
    optimizer = torch.optim.SGD(model.encoder_q.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler(device.type)
    for epoch in range(args.epochs):
        for group in optimizer.param_groups:
            group["lr"] = 0.03 * 0.5 * (1 + math.cos(math.pi * epoch / args.epochs))
        model.train()
        total = correct = seen = 0
        for q, k, _ in loader:
            q, k = q.to(device, non_blocking=True), k.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=torch.float16):
                logits = model(q, k)
                loss = F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device=device))
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            total += loss.item() * len(q)
            correct += (logits.argmax(1) == 0).sum().item()
            seen += len(q)
        acc = knn_accuracy(model, bank, test, device, classes)
        print(f"epoch {epoch} loss {total / seen:.3f} contrast acc {correct / seen:.3f} kNN {acc:.3f}", flush=True)


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
