# SPDX-License-Identifier: Apache-2.0
"""House-price regression on a table: periodic numerical embeddings + residual MLP, torch.compile, fp32, Huber loss; RMSE/MAE/R2 on a validation loader, early stopping."""
import argparse
import os
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.preprocessing import QuantileTransformer
from torch import nn
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"


@dataclass
class Cfg:
    n_num: int = 40
    cats: tuple = (12, 50, 400, 7, 1000)
    d_embed: int = 24
    n_freq: int = 32
    d: int = 1024
    d_hidden: int = 2048
    blocks: int = 5
    dropout: float = 0.15
    lr: float = 5e-4
    epochs: int = 2
    patience: int = 8


class TableData(Dataset):
    def __init__(self, x, c, y):
        self.x = torch.as_tensor(x, dtype=torch.float32)
        self.c = torch.as_tensor(c, dtype=torch.long)
        self.y = torch.as_tensor(y, dtype=torch.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.c[i], self.y[i]


class Periodic(nn.Module):
    """x -> ReLU(Linear([sin(2 pi w x), cos(2 pi w x)])) for each feature on its own."""

    def __init__(self, n, k, d, sigma=0.1):
        super().__init__()
        self.w = nn.Parameter(torch.randn(n, k) * sigma)
        self.weight = nn.Parameter(torch.randn(n, 2 * k, d) / (2 * k) ** 0.5)
        self.bias = nn.Parameter(torch.zeros(n, d))

    def forward(self, x):
        v = 2 * torch.pi * self.w * x[..., None]
        v = torch.cat([v.sin(), v.cos()], -1)
        return torch.relu(torch.einsum("bnk,nkd->bnd", v, self.weight) + self.bias).flatten(1)


class Block(nn.Module):
    def __init__(self, d, h, p):
        super().__init__()
        self.net = nn.Sequential(nn.BatchNorm1d(d), nn.Linear(d, h), nn.ReLU(), nn.Dropout(p), nn.Linear(h, d), nn.Dropout(p))

    def forward(self, x):
        return x + self.net(x)


class TabResNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.num = Periodic(cfg.n_num, cfg.n_freq, cfg.d_embed)
        self.cat = nn.ModuleList([nn.Embedding(c, cfg.d_embed) for c in cfg.cats])
        self.inp = nn.Linear((cfg.n_num + len(cfg.cats)) * cfg.d_embed, cfg.d)
        self.blocks = nn.Sequential(*[Block(cfg.d, cfg.d_hidden, cfg.dropout) for _ in range(cfg.blocks)])
        self.out = nn.Sequential(nn.BatchNorm1d(cfg.d), nn.ReLU(), nn.Linear(cfg.d, 1))

    def forward(self, x, c):
        h = torch.cat([self.num(x)] + [e(c[:, i]) for i, e in enumerate(self.cat)], 1)
        return self.out(self.blocks(self.inp(h))).squeeze(1)


def make(n, cfg, rng):
    x = rng.gamma(2.0, 1.0, (n, cfg.n_num))
    c = np.stack([rng.integers(0, k, n) for k in cfg.cats], 1)
    y = np.sin(x[:, 0]) + 0.3 * x[:, 1] * (c[:, 0] > 3) + 0.1 * rng.standard_normal(n)
    return x, c, y


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=8192)
    args = ap.parse_args()
    cfg = Cfg()
    if SMALL:
        args.batch_size = min(args.batch_size, 32)
        cfg = Cfg(n_num=6, cats=(3, 4), d=32, d_hidden=64, blocks=2)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    xt, ct, yt = make(args.batch_size * (3 if SMALL else 7), cfg, rng)
    xv, cv, yv = make(args.batch_size * 2, cfg, rng)
    qt = QuantileTransformer(n_quantiles=min(100, len(xt)), output_distribution="normal", subsample=20000).fit(xt)
    mu, sd = yt.mean(), yt.std()
    train = DataLoader(TableData(qt.transform(xt), ct, (yt - mu) / sd), args.batch_size, shuffle=True, drop_last=True, num_workers=0 if SMALL else 6)
    val = DataLoader(TableData(qt.transform(xv), cv, (yv - mu) / sd), args.batch_size, num_workers=0 if SMALL else 2)

    model = TabResNet(cfg).to(device)
    net = torch.compile(model) if device == "cuda" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-4)
    loss_fn = nn.HuberLoss(delta=1.0)
    best, bad = float("inf"), 0
    for epoch in range(cfg.epochs):
        net.train()
        for x, c, y in train:
            x, c, y = x.to(device), c.to(device), y.to(device)
            optimizer.zero_grad()
            loss = loss_fn(net(x, c), y)
            loss.backward()
            optimizer.step()
        net.eval()
        preds, targets = [], []
        with torch.no_grad():
            for x, c, y in val:
                preds.append(net(x.to(device), c.to(device)).cpu().numpy())
                targets.append(y.numpy())
        p, t = np.concatenate(preds) * sd + mu, np.concatenate(targets) * sd + mu
        rmse = float(np.sqrt(np.mean((p - t) ** 2)))
        print(f"epoch {epoch} loss {loss.item():.4f} rmse {rmse:.4f} mae {mean_absolute_error(t, p):.4f} r2 {r2_score(t, p):.3f}")
        if rmse < best:
            best, bad = rmse, 0
        else:
            bad += 1
            if bad >= cfg.patience:
                break


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
