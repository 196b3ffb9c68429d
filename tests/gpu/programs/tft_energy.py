"""Temporal Fusion Transformer for hourly electricity use, quantile loss, best model kept and tested at the end. fp32."""
import argparse
import copy

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

QUANTILES = (0.1, 0.5, 0.9)
PAST = ["load", "temp", "wind", "price", "hour_sin", "hour_cos", "dow_sin", "dow_cos"]
FUTURE = ["temp", "hour_sin", "hour_cos", "dow_sin", "dow_cos"]


def make_frame(series, hours, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    frames = []
    for s in range(series):
        temp = 10 + 10 * np.sin(2 * np.pi * t / 8760) + 4 * np.sin(2 * np.pi * t / 24 - 1) + rng.normal(0, 1.5, hours)
        load = 3 + np.sin(2 * np.pi * (t % 24) / 24 + s) + 0.05 * np.abs(temp - 16) + 0.5 * (t // 24 % 7 < 5) + rng.normal(0, 0.2, hours)
        frames.append(pd.DataFrame({"id": s, "load": load, "temp": temp, "wind": rng.gamma(2, 2, hours),
                                    "price": 30 + 10 * load + rng.normal(0, 5, hours),
                                    "hour_sin": np.sin(2 * np.pi * t / 24), "hour_cos": np.cos(2 * np.pi * t / 24),
                                    "dow_sin": np.sin(2 * np.pi * t / 168), "dow_cos": np.cos(2 * np.pi * t / 168)}))
    df = pd.concat(frames, ignore_index=True)
    cols = ["load", "temp", "wind", "price"]
    df[cols] = (df[cols] - df[cols].mean()) / df[cols].std()
    return df


class Windows(Dataset):
    def __init__(self, df, lo, hi, enc, dec, stride):
        self.past, self.future, self.y, self.index = {}, {}, {}, []
        self.enc, self.dec = enc, dec
        for s, part in df.groupby("id"):
            part = part.iloc[int(lo * len(part)):int(hi * len(part))]
            self.past[s] = torch.tensor(part[PAST].values, dtype=torch.float32)
            self.future[s] = torch.tensor(part[FUTURE].values, dtype=torch.float32)
            self.index += [(s, i) for i in range(0, len(part) - enc - dec, stride)]

    def __len__(self):
        return len(self.index)

    def __getitem__(self, k):
        s, i = self.index[k]
        m, e = i + self.enc, i + self.enc + self.dec
        return self.past[s][i:m], self.future[s][m:e], torch.tensor(s), self.past[s][m:e, 0]


class GRN(nn.Module):
    def __init__(self, i, h, o, ctx=None, p=0.1):
        super().__init__()
        self.a, self.b = nn.Linear(i, h), nn.Linear(h, h)
        self.c = nn.Linear(ctx, h, bias=False) if ctx else None
        self.glu, self.norm, self.drop = nn.Linear(h, 2 * o), nn.LayerNorm(o), nn.Dropout(p)
        self.skip = nn.Linear(i, o) if i != o else nn.Identity()

    def forward(self, x, ctx=None):
        h = self.a(x)
        if self.c is not None and ctx is not None:
            c = self.c(ctx)
            h = h + (c[:, None] if h.dim() == 3 else c)
        h = self.drop(self.b(F.elu(h)))
        return self.norm(self.skip(x) + F.glu(self.glu(h), -1))


class VariableSelection(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.embed = nn.ModuleList([nn.Linear(1, d) for _ in range(n)])
        self.single = nn.ModuleList([GRN(d, d, d) for _ in range(n)])
        self.joint = GRN(n * d, d, n, ctx=d)

    def forward(self, x, ctx):
        e = [lin(x[..., i:i + 1]) for i, lin in enumerate(self.embed)]
        w = self.joint(torch.cat(e, -1), ctx).softmax(-1)
        v = torch.stack([g(z) for g, z in zip(self.single, e)], -1)
        return (v * w[..., None, :]).sum(-1)


class TFT(nn.Module):
    def __init__(self, series, d=128, heads=4):
        super().__init__()
        self.static = nn.Embedding(series, d)
        self.ctx = nn.ModuleList([GRN(d, d, d) for _ in range(4)])
        self.past, self.future = VariableSelection(len(PAST), d), VariableSelection(len(FUTURE), d)
        self.enc, self.dec = nn.LSTM(d, d, batch_first=True), nn.LSTM(d, d, batch_first=True)
        self.gate1, self.norm1 = nn.Linear(d, 2 * d), nn.LayerNorm(d)
        self.enrich = GRN(d, d, d, ctx=d)
        self.attn = nn.MultiheadAttention(d, heads, dropout=0.1, batch_first=True)
        self.gate2, self.norm2 = nn.Linear(d, 2 * d), nn.LayerNorm(d)
        self.ff = GRN(d, d, d)
        self.head = nn.Linear(d, len(QUANTILES))

    def forward(self, past, future, sid):
        s = self.static(sid)
        c_sel, c_h, c_c, c_e = [g(s) for g in self.ctx]
        p, f = self.past(past, c_sel), self.future(future, c_sel)
        a, state = self.enc(p, (c_h[None].contiguous(), c_c[None].contiguous()))
        b, _ = self.dec(f, state)
        seq = self.norm1(torch.cat([p, f], 1) + F.glu(self.gate1(torch.cat([a, b], 1)), -1))
        seq = self.enrich(seq, c_e)
        T = seq.shape[1]
        causal = torch.triu(torch.ones(T, T, dtype=torch.bool, device=seq.device), 1)
        att, self.last_weights = self.attn(seq, seq, seq, attn_mask=causal)
        self.last_weights = self.last_weights.detach()[:, -1].mean(0)
        seq = self.norm2(seq + F.glu(self.gate2(att), -1))
        return self.head(self.ff(seq[:, -future.shape[1]:]))


def quantile_loss(pred, y):
    q = torch.tensor(QUANTILES, device=pred.device)
    e = y[..., None] - pred
    return torch.maximum(q * e, (q - 1) * e).sum(-1).mean()


def score(model, loader, device):
    model.eval()
    preds, ys = [], []
    with torch.no_grad():
        for past, future, sid, y in loader:
            preds.append(model(past.to(device), future.to(device), sid.to(device)).cpu())
            ys.append(y)
    preds, ys = torch.cat(preds), torch.cat(ys)
    return quantile_loss(preds, ys).item(), (preds[..., 1] - ys).abs().mean().item()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=256)
    ap.add_argument("--hidden", type=int, default=128)
    ap.add_argument("--series", type=int, default=24)
    ap.add_argument("--hours", type=int, default=4000)
    ap.add_argument("--encoder", type=int, default=168)
    ap.add_argument("--horizon", type=int, default=24)
    ap.add_argument("--epochs", type=int, default=3)
    a = ap.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    df = make_frame(a.series, a.hours)
    splits = [Windows(df, lo, hi, a.encoder, a.horizon, st) for lo, hi, st in ((0, .7, 3), (.7, .85, 6), (.85, 1, 6))]
    train = DataLoader(splits[0], a.batch_size, shuffle=True, drop_last=True, num_workers=2)
    val, test = DataLoader(splits[1], 2 * a.batch_size), DataLoader(splits[2], 2 * a.batch_size)
    model = TFT(a.series, a.hidden).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    best, best_state = float("inf"), None
    for epoch in range(a.epochs):
        model.train()
        losses = []
        for past, future, sid, y in train:
            loss = quantile_loss(model(past.to(device), future.to(device), sid.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            losses.append(loss.item())
        v, mae = score(model, val, device)
        plateau.step(v)
        print(f"epoch {epoch} train {np.mean(losses):.4f} val {v:.4f} mae {mae:.4f}", flush=True)
        if v < best:
            best, best_state = v, copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)
    print("test quantile loss and MAE", score(model, test, device))
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
