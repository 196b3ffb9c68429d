"""DeepAR-style probabilistic forecasting with an LSTM and a negative binomial head.

Validation draws sample paths autoregressively.
"""
import argparse
import os
import tempfile

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


def make_csv(folder, n_series, length):
    rng = np.random.default_rng(7)
    t = np.arange(length)
    frame = {}
    for s in range(n_series):
        level = rng.gamma(4.0, 10.0)
        season = 1 + 0.5 * np.sin(2 * np.pi * (t + rng.integers(24)) / 24)
        frame[f"store_{s}"] = rng.poisson(level * season)
    path = os.path.join(folder, "sales.csv")
    pd.DataFrame(frame).to_csv(path, index=False)
    return path


class Windows(Dataset):
    def __init__(self, values, context, horizon, n, seed):
        rng = np.random.default_rng(seed)
        self.values = values
        self.span = context + horizon
        self.series = rng.integers(0, values.shape[1], n)
        self.start = rng.integers(1, values.shape[0] - self.span, n)

    def __len__(self):
        return len(self.series)

    def __getitem__(self, i):
        s, a = self.series[i], self.start[i]
        y = self.values[a - 1:a + self.span, s].astype(np.float32)
        hours = np.arange(a, a + self.span)
        cov = np.stack([np.sin(2 * np.pi * hours / 24), np.cos(2 * np.pi * hours / 24),
                        np.sin(2 * np.pi * hours / 168), np.cos(2 * np.pi * hours / 168)], -1)
        return torch.from_numpy(y), torch.from_numpy(cov.astype(np.float32)), int(s)


class DeepAR(nn.Module):
    def __init__(self, n_series, hidden, layers, emb=32):
        super().__init__()
        self.embedding = nn.Embedding(n_series, emb)
        self.lstm = nn.LSTM(1 + 4 + emb, hidden, layers, batch_first=True, dropout=0.1)
        self.mu = nn.Linear(hidden, 1)
        self.alpha = nn.Linear(hidden, 1)

    def forward(self, prev, cov, sid, scale, state=None):
        e = self.embedding(sid)[:, None].expand(-1, prev.size(1), -1)
        x = torch.cat([(prev / scale)[..., None], cov, e], -1)
        h, state = self.lstm(x, state)
        mu = nn.functional.softplus(self.mu(h)).squeeze(-1) * scale + 1e-4
        alpha = nn.functional.softplus(self.alpha(h)).squeeze(-1) / scale.sqrt() + 1e-4
        return mu, alpha, state


def nb_dist(mu, alpha):
    r = 1.0 / alpha
    return torch.distributions.NegativeBinomial(total_count=r, probs=mu / (mu + r))


@torch.no_grad()
def forecast(model, y, cov, sid, context, samples):
    scale = 1 + y[:, :context].mean(1, keepdim=True)
    y, cov = y.repeat_interleave(samples, 0), cov.repeat_interleave(samples, 0)
    sid, scale = sid.repeat_interleave(samples, 0), scale.repeat_interleave(samples, 0)
    _, _, state = model(y[:, :context], cov[:, :context], sid, scale)
    prev = y[:, context:context + 1]
    paths = []
    for t in range(context, cov.size(1)):
        mu, alpha, state = model(prev, cov[:, t:t + 1], sid, scale, state)
        prev = nb_dist(mu, alpha).sample()
        paths.append(prev)
    return torch.cat(paths, 1).view(-1, samples, len(paths))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--context", type=int, default=168)
    parser.add_argument("--horizon", type=int, default=24)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--windows", type=int, default=60000)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"

    with tempfile.TemporaryDirectory() as tmp:
        values = pd.read_csv(make_csv(tmp, 200, 2400)).values
    train = Windows(values[:2000], args.context, args.horizon, args.windows, 0)
    valid = Windows(values[2000:], args.context, args.horizon, max(64, args.windows // 60), 1)
    train_loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, num_workers=4)
    valid_loader = DataLoader(valid, batch_size=max(1, args.batch_size // 4))

    model = DeepAR(values.shape[1], args.hidden, args.layers).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for y, cov, sid in train_loader:
            y, cov, sid = y.to(device), cov.to(device), sid.to(device)
            scale = 1 + y[:, :args.context].mean(1, keepdim=True)
            mu, alpha, _ = model(y[:, :-1], cov, sid, scale)
            loss = -nb_dist(mu, alpha).log_prob(y[:, 1:]).mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()
            total += loss.item()
        model.eval()
        ql = []
        for y, cov, sid in valid_loader:
            y, cov, sid = y.to(device), cov.to(device), sid.to(device)
            paths = forecast(model, y, cov, sid, args.context, args.samples)
            target = y[:, args.context + 1:]
            for q in (0.1, 0.5, 0.9):
                pred = paths.quantile(q, dim=1)
                diff = target - pred
                ql.append(torch.maximum(q * diff, (q - 1) * diff).mean().item())
        print(f"epoch {epoch} nll {total / len(train_loader):.4f} quantile loss {np.mean(ql):.4f}")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
