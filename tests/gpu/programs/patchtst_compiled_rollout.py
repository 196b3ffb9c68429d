# SPDX-License-Identifier: Apache-2.0
"""PatchTST for multivariate series, its layers compiled one by one; test by rolling the forecast forward; predictions kept on the device and joined."""
import argparse
import csv
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Windows(Dataset):
    def __init__(self, series, lookback, horizon, stride=1):
        self.s, self.l, self.h, self.stride = torch.from_numpy(series), lookback, horizon, stride

    def __len__(self):
        return (len(self.s) - self.l - self.h) // self.stride

    def __getitem__(self, i):
        i *= self.stride
        return self.s[i:i + self.l], self.s[i + self.l:i + self.l + self.h]


class TSTLayer(nn.Module):
    def __init__(self, d, heads, ff, drop):
        super().__init__()
        self.attn = nn.MultiheadAttention(d, heads, dropout=0.0, batch_first=True)
        self.bn1, self.bn2 = nn.BatchNorm1d(d), nn.BatchNorm1d(d)
        self.ff = nn.Sequential(nn.Linear(d, ff), nn.GELU(), nn.Dropout(drop), nn.Linear(ff, d))
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        x = self.bn1((x + self.drop(self.attn(x, x, x, need_weights=False)[0])).transpose(1, 2)).transpose(1, 2)
        return self.bn2((x + self.drop(self.ff(x))).transpose(1, 2)).transpose(1, 2)


class PatchTST(nn.Module):
    def __init__(self, lookback, horizon, patch=16, stride=8, d=128, heads=16, ff=256, layers=3, drop=0.2):
        super().__init__()
        self.patch, self.stride = patch, stride
        n = (lookback - patch) // stride + 1
        self.embed = nn.Linear(patch, d)
        self.pos = nn.Parameter(torch.randn(n, d) * 0.02)
        self.layers = nn.ModuleList(TSTLayer(d, heads, ff, drop) for _ in range(layers))
        self.head = nn.Linear(n * d, horizon)

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        std = x.std(1, keepdim=True) + 1e-5
        x = ((x - mean) / std).transpose(1, 2)
        b, c, _ = x.shape
        z = self.embed(x.unfold(-1, self.patch, self.stride)).flatten(0, 1) + self.pos
        for layer in self.layers:
            z = layer(z)
        y = self.head(z.flatten(1)).view(b, c, -1).transpose(1, 2)
        return y * std + mean


@torch.no_grad()
def rollout(model, loader, rounds):
    model.eval()
    preds, trues = [], []
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        parts = []
        for _ in range(rounds):
            step = model(x)
            parts.append(step)
            x = torch.cat([x[:, step.shape[1]:], step], 1)
        preds.append(torch.cat(parts, 1))
        trues.append(y)
    preds, trues = torch.cat(preds), torch.cat(trues)
    return (preds - trues).pow(2).mean().item(), (preds - trues).abs().mean().item()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--epochs", type=int, default=2)
    args = ap.parse_args()
    torch.manual_seed(2021)
    np.random.seed(2021)
    torch.set_float32_matmul_precision("high")
    lookback, horizon, channels = (64, 8, 3) if SMALL else (512, 96, 21)
    bs = 4 if SMALL else args.batch_size
    rounds = 3
    length = lookback + horizon * rounds
    t = np.arange(length + bs * 10)[:, None]
    series = (np.sin(t / np.random.uniform(3, 200, channels)) + 0.1 * np.random.randn(len(t), channels)).astype("float32")
    train = DataLoader(Windows(series, lookback, horizon), bs, shuffle=True, drop_last=True, num_workers=0)
    test = DataLoader(Windows(series, lookback, horizon * rounds, stride=2), bs, drop_last=True)
    model = PatchTST(lookback, horizon, d=16, heads=2, ff=32, layers=1) if SMALL else PatchTST(lookback, horizon)
    model = model.to(device)
    for layer in model.layers:  # regional compilation
        layer.compile()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, steps_per_epoch=len(train), epochs=args.epochs)
    log = open(os.path.join(tempfile.mkdtemp(), "log.csv"), "w", newline="")
    writer = csv.DictWriter(log, ["epoch", "train", "mse", "mae"])
    writer.writeheader()
    for epoch in range(args.epochs):
        model.train()
        losses = []
        for x, y in train:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = nn.functional.huber_loss(model(x), y)
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        mse, mae = rollout(model, test, rounds)
        writer.writerow({"epoch": epoch, "train": np.mean(losses), "mse": mse, "mae": mae})
        print(epoch, np.mean(losses), mse, mae)
    log.close()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
