# SPDX-License-Identifier: Apache-2.0
"""Speech separation (Conv-TasNet): two-second segments in training, whole mixtures one by one in validation, early stopping."""
import argparse
import copy
import itertools
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
RATE = 8000


class Mixtures(Dataset):
    def __init__(self, n, seconds, jitter=0.0):
        g = torch.Generator().manual_seed(n)
        self.lengths = [int(RATE * (seconds + jitter * torch.rand(1, generator=g).item())) for _ in range(n)]

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        t = torch.arange(self.lengths[i]) / RATE
        f = torch.rand(2, 5, 1, generator=g) * 800 + 100
        sources = torch.sin(2 * torch.pi * f * t).mean(1) * torch.rand(2, 1, generator=g)
        return sources.sum(0), sources


class GlobalLayerNorm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(1, c, 1)), nn.Parameter(torch.zeros(1, c, 1))

    def forward(self, y):
        mean = y.mean(dim=(1, 2), keepdim=True)
        var = ((y - mean) ** 2).mean(dim=(1, 2), keepdim=True)
        return self.gamma * (y - mean) / torch.sqrt(var + 1e-8) + self.beta


class TemporalBlock(nn.Module):
    def __init__(self, B, H, dilation):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(B, H, 1, bias=False), nn.PReLU(), GlobalLayerNorm(H), nn.Conv1d(H, H, 3, padding=dilation, dilation=dilation, groups=H, bias=False), nn.PReLU(), GlobalLayerNorm(H),
                                 nn.Conv1d(H, B, 1, bias=False))

    def forward(self, x):
        return x + self.net(x)


class ConvTasNet(nn.Module):
    def __init__(self, N=256, L=16, B=192, H=384, X=8, R=3, C=2):
        super().__init__()
        self.C, self.L, self.N = C, L, N
        self.encoder = nn.Conv1d(1, N, L, L // 2, bias=False)
        self.decoder = nn.ConvTranspose1d(N, 1, L, L // 2, bias=False)
        self.mask = nn.Sequential(GlobalLayerNorm(N), nn.Conv1d(N, B, 1), *[TemporalBlock(B, H, 2 ** x) for _ in range(R) for x in range(X)], nn.Conv1d(B, C * N, 1), nn.ReLU())

    def forward(self, mix):
        w = F.relu(self.encoder(mix.unsqueeze(1)))
        m = self.mask(w).view(len(mix), self.C, self.N, -1)
        est = self.decoder((w.unsqueeze(1) * m).flatten(0, 1)).view(len(mix), self.C, -1)
        return F.pad(est, (0, mix.shape[-1] - est.shape[-1]))


def si_snr(est, ref):
    est, ref = est - est.mean(-1, keepdim=True), ref - ref.mean(-1, keepdim=True)
    proj = (est * ref).sum(-1, keepdim=True) * ref / (ref.pow(2).sum(-1, keepdim=True) + 1e-8)
    return 10 * torch.log10(proj.pow(2).sum(-1) / ((est - proj).pow(2).sum(-1) + 1e-8) + 1e-8)


def pit_loss(est, ref):
    perms = list(itertools.permutations(range(ref.shape[1])))
    scores = torch.stack([si_snr(est[:, list(p)], ref).mean(1) for p in perms], 1)
    return -scores.max(1)[0].mean()


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.bad, self.state = patience, float("inf"), 0, None

    def __call__(self, value, model):
        if value < self.best:
            self.best, self.bad = value, 0
            self.state = {k: v.cpu().clone() for k, v in model.state_dict().items()}
        else:
            self.bad += 1
        return self.bad > self.patience


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=8)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--patience", type=int, default=1)
    args = p.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    seconds = 0.2 if SMALL else 2.0
    bs = 2 if SMALL else args.batch_size
    train = DataLoader(Mixtures(bs * (2 if SMALL else 6), seconds), bs, shuffle=True, drop_last=True, num_workers=0 if SMALL else 2)
    val = DataLoader(Mixtures(3 if SMALL else 10, seconds * 2, seconds * 4), 1)
    model = (ConvTasNet(16, 16, 8, 16, 3, 1) if SMALL else ConvTasNet()).to(device)
    optimizer = torch.optim.RAdam(model.parameters(), lr=1e-3, weight_decay=1e-5, decoupled_weight_decay=True)
    stop = EarlyStopping(args.patience)
    for epoch in range(args.epochs):
        model.train()
        for mix, src in train:
            mix, src = mix.to(device), src.to(device)
            loss = pit_loss(model(mix), src)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5)
            optimizer.step()
        model.eval()
        with torch.no_grad():
            value = sum(pit_loss(model(m.to(device)), s.to(device)).item() for m, s in val) / len(val)
        print(f"epoch {epoch} train {loss.item():.3f} val {value:.3f}")
        if stop(value, model):
            print("early stop")
            break
    model.load_state_dict(stop.state)


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
