# SPDX-License-Identifier: Apache-2.0
"""Electricity load forecasting: GRU encoder, attention GRU decoder with scheduled teacher forcing, pinball loss at 3 quantiles; validation MAE and coverage, ReduceLROnPlateau, CSV."""
import argparse
import os
import random
import tempfile

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
QUANTILES = (0.1, 0.5, 0.9)


class LoadSeries(Dataset):
    """Sliding windows over many meters; target = next `horizon` hours, known covariates = calendar."""

    def __init__(self, meters, hours, context, horizon, stride, seed):
        rng = np.random.default_rng(seed)
        t = np.arange(hours)
        phase = rng.uniform(0, 24, (meters, 1))
        load = 1 + 0.5 * np.sin(2 * np.pi * (t + phase) / 24) + 0.2 * np.sin(2 * np.pi * t / 168) + 0.1 * rng.standard_normal((meters, hours))
        self.load = torch.tensor(load, dtype=torch.float32)
        cal = np.stack([np.sin(2 * np.pi * t / 24), np.cos(2 * np.pi * t / 24), np.sin(2 * np.pi * t / 168), np.cos(2 * np.pi * t / 168)], 1)
        self.cal = torch.tensor(cal, dtype=torch.float32)
        self.context, self.horizon = context, horizon
        self.index = [(m, s) for m in range(meters) for s in range(0, hours - context - horizon, stride)]

    def __len__(self):
        return len(self.index)

    def __getitem__(self, i):
        m, s = self.index[i]
        e = s + self.context
        x = torch.cat([self.load[m, s:e, None], self.cal[s:e]], 1)
        return x, self.cal[e:e + self.horizon], self.load[m, e:e + self.horizon]


class Encoder(nn.Module):
    def __init__(self, n_in, hidden, layers):
        super().__init__()
        self.gru = nn.GRU(n_in, hidden, layers, batch_first=True, dropout=0.1)

    def forward(self, x):
        return self.gru(x)


class Decoder(nn.Module):
    def __init__(self, n_cov, hidden, layers):
        super().__init__()
        self.score = nn.Linear(2 * hidden, hidden)
        self.v = nn.Linear(hidden, 1, bias=False)
        self.gru = nn.GRU(1 + n_cov + hidden, hidden, layers, batch_first=True, dropout=0.1)
        self.out = nn.Linear(2 * hidden, len(QUANTILES))

    def step(self, prev, cov, h, memory):
        query = h[-1].unsqueeze(1).expand(-1, memory.size(1), -1)
        energy = self.v(torch.tanh(self.score(torch.cat([query, memory], -1)))).squeeze(-1)
        ctx = torch.bmm(torch.softmax(energy, -1).unsqueeze(1), memory)
        o, h = self.gru(torch.cat([prev[:, None, None], cov[:, None], ctx], -1), h)
        return self.out(torch.cat([o, ctx], -1)).squeeze(1), h


class Forecaster(nn.Module):
    def __init__(self, hidden=256, layers=2):
        super().__init__()
        self.encoder, self.decoder = Encoder(5, hidden, layers), Decoder(4, hidden, layers)

    def forward(self, x, cov, target=None, teacher=0.0):
        memory, h = self.encoder(x)
        prev = x[:, -1, 0]
        outputs = []
        for t in range(cov.size(1)):
            q, h = self.decoder.step(prev, cov[:, t], h, memory)
            outputs.append(q)
            prev = target[:, t] if target is not None and random.random() < teacher else q[:, 1]
        return torch.stack(outputs, 1)


def pinball(pred, y):
    err = y.unsqueeze(-1) - pred
    q = torch.tensor(QUANTILES, device=pred.device)
    return torch.maximum(q * err, (q - 1) * err).mean()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=256)
    ap.add_argument("--hidden", type=int, default=256)
    ap.add_argument("--epochs", type=int, default=2)
    args = ap.parse_args()
    random.seed(1)
    torch.manual_seed(1)
    if SMALL:
        args.batch_size, args.hidden = min(args.batch_size, 8), 16
    context, horizon = (24, 4) if SMALL else (168, 24)
    n_batches = 2 if SMALL else 8
    stride = 6
    per_meter = 10
    hours = context + horizon + stride * per_meter
    meters = max(1, args.batch_size * n_batches // per_meter)
    train_loader = DataLoader(LoadSeries(meters, hours, context, horizon, stride, 0), batch_size=args.batch_size, shuffle=True, drop_last=True)
    val_loader = DataLoader(LoadSeries(max(1, meters // 3), hours, context, horizon, stride, 1), batch_size=args.batch_size * 2, shuffle=False)
    model = Forecaster(args.hidden).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=1)
    out = open(os.path.join(tempfile.mkdtemp(), "history.csv"), "w")
    out.write("epoch,train,val,mae,coverage\n")
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x, cov, y in train_loader:
            x, cov, y = x.to(device), cov.to(device), y.to(device)
            loss = pinball(model(x, cov, y, teacher=0.5), y)
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            total += loss.item()
        model.eval()
        vloss, mae, cover, n = 0.0, 0.0, 0.0, 0
        with torch.no_grad():
            for x, cov, y in val_loader:
                x, cov, y = x.to(device), cov.to(device), y.to(device)
                pred = model(x, cov)
                vloss += pinball(pred, y).item() * len(y)
                mae += (pred[..., 1] - y).abs().mean().item() * len(y)
                cover += ((y >= pred[..., 0]) & (y <= pred[..., 2])).float().mean().item() * len(y)
                n += len(y)
        sched.step(vloss / n)
        row = (epoch, total / len(train_loader), vloss / n, mae / n, cover / n)
        out.write(",".join(map(str, row)) + "\n")
        print("epoch %d train %.4f val %.4f mae %.4f coverage %.3f" % row)
    out.close()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
