"""Six-hour weather forecast on a 1.4 degree grid: circular-padded UNet, compiled, TF32.

Trained on one-step targets, validated on a four-step rollout.
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Reanalysis(Dataset):
    """A fixed random field advected along longitude, with noise."""

    def __init__(self, times, channels, lat, lon, lead=1, seed=0):
        g = torch.Generator().manual_seed(seed)
        coarse = torch.randn(1, channels, lat // 8, lon // 8, generator=g)
        self.base = F.interpolate(coarse, size=(lat, lon), mode="bicubic")[0]
        self.times, self.lead = times, lead

    def __len__(self):
        return self.times

    def state(self, t):
        return self.base.roll(3 * t, dims=-1) + 0.1 * torch.randn_like(self.base)

    def __getitem__(self, t):
        return self.state(t), torch.stack([self.state(t + k) for k in range(1, self.lead + 1)])


class Conv(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3)
        self.norm = nn.GroupNorm(8, cout)

    def forward(self, x):
        x = F.pad(x, (1, 1, 0, 0), mode="circular")
        x = F.pad(x, (0, 0, 1, 1))
        return F.gelu(self.norm(self.conv(x)))


class WeatherUNet(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        w = [width, 2 * width, 4 * width, 8 * width]
        self.stem = Conv(channels, w[0])
        self.down = nn.ModuleList(nn.Sequential(Conv(a, b), Conv(b, b)) for a, b in zip(w[:-1], w[1:]))
        self.up = nn.ModuleList(nn.Sequential(Conv(a + b, a), Conv(a, a)) for a, b in zip(w[-2::-1], w[:0:-1]))
        self.out = nn.Conv2d(w[0], channels, 1)

    def forward(self, x):
        h = self.stem(x)
        skips = []
        for block in self.down:
            skips.append(h)
            h = block(F.avg_pool2d(h, 2))
        for block in self.up:
            h = F.interpolate(h, scale_factor=2, mode="nearest")
            h = block(torch.cat([h, skips.pop()], 1))
        return x + self.out(h)


def lat_weights(lat):
    w = torch.cos(torch.linspace(-torch.pi / 2, torch.pi / 2, lat + 2)[1:-1])
    return (w / w.mean()).view(1, 1, lat, 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--channels", type=int, default=69)
    parser.add_argument("--lat", type=int, default=128)
    parser.add_argument("--lon", type=int, default=256)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--times", type=int, default=960)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()

    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = WeatherUNet(args.channels, args.width).to(device)
    compiled = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95))
    weights = lat_weights(args.lat).to(device)
    train = DataLoader(Reanalysis(args.times, args.channels, args.lat, args.lon), batch_size=args.batch_size,
                       shuffle=True, num_workers=8, drop_last=True)
    valid = DataLoader(Reanalysis(max(4, args.times // 12), args.channels, args.lat, args.lon, lead=4, seed=0),
                       batch_size=args.batch_size // 2, num_workers=4, drop_last=True)
    for epoch in range(args.epochs):
        model.train()
        for i, (x, y) in enumerate(train):
            x, y = x.to(device), y.to(device).squeeze(1)
            optimizer.zero_grad()
            loss = (weights * (compiled(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            if i % 15 == 0:
                print(f"epoch {epoch} iter {i}/{len(train)} loss {loss.item():.5f}")
        model.eval()
        rmse = torch.zeros(4)
        with torch.no_grad():
            for x, y in valid:
                x = x.to(device)
                for k in range(4):
                    x = compiled(x)
                    rmse[k] += (weights * (x - y[:, k].to(device)) ** 2).mean().sqrt().cpu()
        print(f"epoch {epoch} rollout rmse", [round(v, 4) for v in (rmse / len(valid)).tolist()])

    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
