"""Class-conditional Gated PixelCNN on 32x32 colour images, 256-way softmax, torch.compile, bf16."""
import argparse
import math
import os
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

p = argparse.ArgumentParser()
p.add_argument("--dim", type=int, default=192)
p.add_argument("--layers", type=int, default=8)
p.add_argument("--batch-size", type=int, default=64)
p.add_argument("--n-train", type=int, default=2560)
p.add_argument("--epochs", type=int, default=2)
p.add_argument("--lr", type=float, default=3e-4)
p.add_argument("--levels", type=int, default=256)
p.add_argument("--no-compile", action="store_true")
args = p.parse_args()
torch.manual_seed(3)
torch.set_float32_matmul_precision("high")
device = "cuda" if torch.cuda.is_available() else "cpu"


class GatedActivation(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        return torch.tanh(a) * torch.sigmoid(b)


class GatedMaskedConv2d(nn.Module):
    def __init__(self, mask_type, dim, kernel, residual=True, n_classes=10):
        super().__init__()
        self.mask_type, self.residual = mask_type, residual
        self.class_cond = nn.Embedding(n_classes, 2 * dim)
        self.vert_stack = nn.Conv2d(dim, dim * 2, (kernel // 2 + 1, kernel), 1, (kernel // 2, kernel // 2))
        self.vert_to_horiz = nn.Conv2d(2 * dim, 2 * dim, 1)
        self.horiz_stack = nn.Conv2d(dim, dim * 2, (1, kernel // 2 + 1), 1, (0, kernel // 2))
        self.horiz_resid = nn.Conv2d(dim, dim, 1)
        self.gate = GatedActivation()

    def make_causal(self):
        self.vert_stack.weight.data[:, :, -1].zero_()
        self.horiz_stack.weight.data[:, :, :, -1].zero_()

    def forward(self, x_v, x_h, h):
        if self.mask_type == "A":
            self.make_causal()
        h = self.class_cond(h)[:, :, None, None]
        h_vert = self.vert_stack(x_v)[:, :, :x_v.size(-1), :]
        out_v = self.gate(h_vert + h)
        h_horiz = self.horiz_stack(x_h)[:, :, :, :x_h.size(-2)]
        out = self.gate(self.vert_to_horiz(h_vert) + h_horiz + h)
        out_h = self.horiz_resid(out) + x_h if self.residual else self.horiz_resid(out)
        return out_v, out_h


class GatedPixelCNN(nn.Module):
    def __init__(self, levels, dim, n_layers, n_classes=10):
        super().__init__()
        self.levels = levels
        self.inp = nn.Conv2d(3, dim, 1)
        self.layers = nn.ModuleList([GatedMaskedConv2d("A" if i == 0 else "B", dim, 7 if i == 0 else 3, i > 0, n_classes) for i in range(n_layers)])
        self.output = nn.Sequential(nn.Conv2d(dim, 512, 1), nn.ReLU(True), nn.Conv2d(512, levels * 3, 1))

    def forward(self, x, label):
        x_v = x_h = self.inp(x)
        for layer in self.layers:
            x_v, x_h = layer(x_v, x_h, label)
        b, _, h, w = x.shape
        return self.output(x_h).view(b, self.levels, 3, h, w)


class Cifar(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        base = torch.rand(n, 3, 4, 4, generator=g)
        self.x = (F.interpolate(base, size=32, mode="bilinear") * (args.levels - 1)).to(torch.uint8)
        self.y = torch.randint(0, 10, (n,), generator=g)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


train_loader = DataLoader(Cifar(args.n_train, 0), args.batch_size, shuffle=True, drop_last=True, pin_memory=device == "cuda")
test_loader = DataLoader(Cifar(args.n_train // 8, 1), args.batch_size, pin_memory=device == "cuda")
model = GatedPixelCNN(args.levels, args.dim, args.layers).to(device)
net = model if args.no_compile else torch.compile(model)
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs * len(train_loader))


def nll(x, y):
    x = x.to(device, non_blocking=True)
    y = y.to(device, non_blocking=True)
    with torch.autocast(device, dtype=torch.bfloat16):
        logits = net(x.float() / (args.levels - 1) * 2 - 1, y)
    return F.cross_entropy(logits.float(), x.long())


best = 1e9
out = tempfile.mkdtemp()
for epoch in range(1, args.epochs + 1):
    model.train()
    t, losses = time.time(), []
    for i, (x, y) in enumerate(train_loader):
        loss = nll(x, y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        losses.append(loss.item())
        if i % 10 == 0:
            print(f"epoch {epoch} [{i}/{len(train_loader)}] bits/dim {sum(losses[-10:]) / len(losses[-10:]) / math.log(2):.3f} {time.time() - t:.1f}s")
    model.eval()
    with torch.no_grad():
        val = sum(nll(x, y).item() for x, y in test_loader) / len(test_loader)
    print(f"epoch {epoch} validation bits/dim {val / math.log(2):.3f}")
    if val < best:
        best = val
        torch.save(model.state_dict(), os.path.join(out, "pixelcnn.pt"))

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
