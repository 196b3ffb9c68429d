# SPDX-License-Identifier: Apache-2.0
"""beta-VAE on 128x128 faces; after each epoch the importance weighted bound with several samples per image, a CSV log, the best weights saved."""
import argparse
import csv
import math
import os
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"


class Blobs(Dataset):
    def __init__(self, n: int, size: int) -> None:
        self.n, self.size = n, size
        lin = torch.linspace(-1, 1, size)
        self.y, self.x = torch.meshgrid(lin, lin, indexing="ij")

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Tensor:
        g = torch.Generator().manual_seed(i)
        cx, cy = torch.rand(2, 3, generator=g) * 1.6 - 0.8
        d = (self.x[None] - cx[:, None, None]) ** 2 + (self.y[None] - cy[:, None, None]) ** 2
        return torch.exp(-d * 10)


class Res(nn.Module):
    def __init__(self, c: int) -> None:
        super().__init__()
        self.f = nn.Sequential(nn.GroupNorm(8, c), nn.SiLU(), nn.Conv2d(c, c, 3, padding=1), nn.GroupNorm(8, c), nn.SiLU(), nn.Conv2d(c, c, 3, padding=1))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.f(x)


class VAE(nn.Module):
    def __init__(self, size: int, base: int, latent: int) -> None:
        super().__init__()
        ch = [base, base * 2, base * 4, base * 8]
        down: list[nn.Module] = [nn.Conv2d(3, ch[0], 3, padding=1)]
        for a, b in zip(ch, ch[1:] + [ch[-1]]):
            down += [Res(a), nn.Conv2d(a, b, 4, 2, 1)]
        self.side = size // 16
        self.enc = nn.Sequential(*down, nn.Flatten(), nn.Linear(ch[-1] * self.side ** 2, 2 * latent))
        up: list[nn.Module] = []
        for a, b in zip([ch[-1]] + ch[::-1], ch[::-1]):
            up += [nn.Upsample(scale_factor=2), nn.Conv2d(a, b, 3, padding=1), Res(b)]
        self.fc = nn.Linear(latent, ch[-1] * self.side ** 2)
        self.dec = nn.Sequential(nn.Unflatten(1, (ch[-1], self.side, self.side)), *up, nn.Conv2d(ch[0], 3, 3, padding=1))

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mu, logvar = self.enc(x).chunk(2, 1)
        return mu, logvar.clamp(-8, 8)

    def decode(self, z: Tensor) -> Tensor:
        return self.dec(self.fc(z))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mu, logvar = self.encode(x)
        return self.decode(mu + torch.randn_like(mu) * (0.5 * logvar).exp()), mu, logvar


def elbo_loss(x: Tensor, recon: Tensor, mu: Tensor, logvar: Tensor, beta: float) -> Tensor:
    rec = F.binary_cross_entropy_with_logits(recon, x, reduction="sum") / len(x)
    kl = -0.5 * (1 + logvar - mu ** 2 - logvar.exp()).sum() / len(x)
    return rec + beta * kl


@torch.inference_mode()
def iwae(model: VAE, loader: DataLoader, k: int) -> float:
    model.eval()
    total, n = 0.0, 0
    for x in loader:
        x = x.to(device)
        mu, logvar = model.encode(x)
        std = (0.5 * logvar).exp()
        eps = torch.randn(len(x), k, mu.shape[1], device=device)
        z = mu[:, None] + std[:, None] * eps
        logits = model.decode(z.flatten(0, 1)).view(len(x), k, *x.shape[1:])
        target = x[:, None].expand_as(logits)
        log_px = -F.binary_cross_entropy_with_logits(logits, target, reduction="none").flatten(2).sum(-1)
        log_pz = -0.5 * (z ** 2 + math.log(2 * math.pi)).sum(-1)
        log_q = -0.5 * (eps ** 2 + math.log(2 * math.pi) + logvar[:, None]).sum(-1)
        total += (torch.logsumexp(log_px + log_pz - log_q, 1) - math.log(k)).sum().item()
        n += len(x)
    return total / n


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--k", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(0)
    size = 32 if SMALL else 128
    bs = 4 if SMALL else args.batch_size
    train = DataLoader(Blobs(bs * 6, size), bs, shuffle=True, num_workers=0 if SMALL else 4)
    val = DataLoader(Blobs(bs * 2 + bs // 2, size), bs)
    model = VAE(size, 8 if SMALL else 32, 16 if SMALL else 256).to(device)
    optimizer = torch.optim.Adamax(model.parameters(), lr=1e-3)
    folder = Path(tempfile.mkdtemp())
    best = -math.inf
    with open(folder / "log.csv", "w", newline="") as f:
        writer = csv.writer(f)
        writer.writerow(["epoch", "loss", "iwae"])
        for epoch in range(2):
            model.train()
            for i, x in enumerate(train):
                x = x.to(device)
                beta = min(1.0, (epoch * len(train) + i + 1) / 10)
                loss = elbo_loss(x, *model(x), beta)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_value_(model.parameters(), 100.0)
                optimizer.step()
            bound = iwae(model, val, args.k)
            writer.writerow([epoch, loss.item(), bound])
            print(epoch, loss.item(), bound)
            if bound > best:
                best = bound
                torch.save(model.state_dict(), folder / "best.pt")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
