"""Radar nowcasting: ConvLSTM encoder-forecaster, ten frames in and ten out, scheduled sampling, weighted loss. TF32 convolutions."""
import argparse
import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class RadarSequences(Dataset):
    """Gaussian rain cells which drift, grow and decay."""

    def __init__(self, n, frames, size, seed):
        self.n, self.frames, self.size, self.seed = n, frames, size, seed
        ax = torch.linspace(0, 1, size)
        self.y, self.x = ax[:, None], ax[None, :]

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 1_000_003 + i)
        k = 6
        pos, vel = torch.rand(k, 2, generator=g), (torch.rand(k, 2, generator=g) - 0.5) * 0.05
        width, grow = 0.002 + 0.01 * torch.rand(k, generator=g), (torch.rand(k, generator=g) - 0.5) * 0.1
        t = torch.arange(self.frames).float()[:, None]
        p = (pos[None] + t[..., None] * vel[None]) % 1
        amp = torch.exp(t * grow[None]).clamp(max=2)
        dy = torch.exp(-(self.y[None, None, :, 0] - p[..., 0:1]) ** 2 / width[None, :, None])
        dx = torch.exp(-(self.x[None, None, 0] - p[..., 1:2]) ** 2 / width[None, :, None])
        return torch.einsum("tk,tky,tkx->tyx", amp, dy, dx).clamp(0, 1)[:, None]


class ConvLSTMCell(nn.Module):
    def __init__(self, i, h, k=5):
        super().__init__()
        self.h = h
        self.gates = nn.Conv2d(i + h, 4 * h, k, padding=k // 2)
        self.norm = nn.GroupNorm(4, 4 * h)

    def forward(self, x, state):
        hidden, cell = state
        i, f, o, g = self.norm(self.gates(torch.cat([x, hidden], 1))).chunk(4, 1)
        cell = torch.sigmoid(f + 1) * cell + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(cell), cell

    def start(self, b, h, w, device):
        zero = torch.zeros(b, self.h, h, w, device=device)
        return zero, zero


class Nowcaster(nn.Module):
    def __init__(self, hidden=(48, 48, 48)):
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, padding=1)
        sizes = [16, *hidden]
        self.enc = nn.ModuleList([ConvLSTMCell(i, h) for i, h in zip(sizes, hidden)])
        self.dec = nn.ModuleList([ConvLSTMCell(i, h) for i, h in zip(sizes, hidden)])
        self.out = nn.Conv2d(hidden[-1], 1, 1)

    @staticmethod
    def run(cells, x, states):
        for n, cell in enumerate(cells):
            states[n] = cell(x, states[n])
            x = states[n][0]
        return x

    def forward(self, past, horizon, truth=None, teacher=0.0):
        b, t, _, h, w = past.shape
        states = [c.start(b, h, w, past.device) for c in self.enc]
        for k in range(t):
            self.run(self.enc, F.leaky_relu(self.stem(past[:, k]), 0.1), states)
        frame, outs = past[:, -1], []
        for k in range(horizon):
            y = self.run(self.dec, F.leaky_relu(self.stem(frame), 0.1), states)
            frame = torch.sigmoid(self.out(y) - 2)
            outs.append(frame)
            if truth is not None and random.random() < teacher:
                frame = truth[:, k]
        return torch.stack(outs, 1)


def rain_loss(pred, y):
    weight = 1 + 4 * (y > 0.2).float() + 10 * (y > 0.5).float()
    return (weight * ((pred - y) ** 2 + (pred - y).abs())).mean()


def csi(pred, y, threshold):
    p, t = pred > threshold, y > threshold
    return (p & t).sum().item(), (p | t).sum().item()


def main(a):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    random.seed(0)
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    frames = a.past + a.horizon
    train = DataLoader(RadarSequences(a.sequences, frames, a.size, 1), a.batch_size, shuffle=True, num_workers=2, drop_last=True)
    val = DataLoader(RadarSequences(a.sequences // 8, frames, a.size, 2), a.batch_size, num_workers=1)
    long = DataLoader(RadarSequences(a.sequences // 16, a.past + 2 * a.horizon, a.size, 3), a.batch_size)
    model = Nowcaster(tuple([a.hidden] * 3)).to(device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, alpha=0.9)
    best, best_state = float("inf"), None
    for epoch in range(a.epochs):
        model.train()
        teacher = 0.5 * (1 - epoch / a.epochs)
        total = 0.0
        for seq in train:
            seq = seq.to(device)
            past, future = seq[:, :a.past], seq[:, a.past:]
            loss = rain_loss(model(past, a.horizon, future, teacher), future)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(model.parameters(), 0.5)
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            v = 0.0
            for seq in val:
                seq = seq.to(device)
                v += rain_loss(model(seq[:, :a.past], a.horizon), seq[:, a.past:]).item() / len(val)
        print(f"epoch {epoch} train {total / len(train):.4f} val {v:.4f}", flush=True)
        if v < best:
            best, best_state = v, {k: t.cpu().clone() for k, t in model.state_dict().items()}
    model.load_state_dict(best_state)
    hits = union = 0
    with torch.no_grad():
        for seq in long:
            pred = model(seq[:, :a.past].to(device), 2 * a.horizon).cpu()
            h, u = csi(pred, seq[:, a.past:], 0.3)
            hits, union = hits + h, union + u
    print(f"test CSI at double horizon {hits / max(1, union):.4f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=8)
    ap.add_argument("--size", type=int, default=80)
    ap.add_argument("--hidden", type=int, default=48)
    ap.add_argument("--past", type=int, default=10)
    ap.add_argument("--horizon", type=int, default=10)
    ap.add_argument("--sequences", type=int, default=480)
    ap.add_argument("--epochs", type=int, default=3)
    main(ap.parse_args())
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
