# SPDX-License-Identifier: Apache-2.0
"""VQ-VAE on 192x192 images: encoder, codebook with straight-through gradients (codebook also by moving averages), decoder."""
import argparse
import os

import torch
from torch import nn
from torch.nn import functional as F

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"


class ResBlock(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.net = nn.Sequential(nn.ReLU(), nn.Conv2d(width, inner, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(inner, width, 1))

    def forward(self, x):
        return x + self.net(x)


class Quantize(nn.Module):
    def __init__(self, dim, n, decay=0.99):
        super().__init__()
        self.n, self.decay = n, decay
        codes = torch.randn(dim, n)
        self.register_buffer("codes", codes)
        self.register_buffer("count", torch.zeros(n))
        self.register_buffer("average", codes.clone())

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        distance = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.codes + self.codes.pow(2).sum(0, keepdim=True)
        index = (-distance).max(1)[1]
        one_hot = F.one_hot(index, self.n).type(flat.dtype)
        quantized = F.embedding(index.view(*x.shape[:-1]), self.codes.t())
        if self.training:
            with torch.no_grad():
                self.count.mul_(self.decay).add_(one_hot.sum(0), alpha=1 - self.decay)
                self.average.mul_(self.decay).add_(flat.t() @ one_hot, alpha=1 - self.decay)
                total = self.count.sum()
                size = (self.count + 1e-5) / (total + self.n * 1e-5) * total
                self.codes.copy_(self.average / size[None])
        loss = (quantized.detach() - x).pow(2).mean()
        return x + (quantized - x).detach(), loss, index


class VQVAE(nn.Module):
    def __init__(self, width=160, codes=1024, dim=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, width // 2, 4, 2, 1), nn.ReLU(inplace=True), nn.Conv2d(width // 2, width, 4, 2, 1), nn.ReLU(inplace=True),
                                     nn.Conv2d(width, width, 3, padding=1), *[ResBlock(width, 48) for _ in range(4)], nn.ReLU(inplace=True), nn.Conv2d(width, dim, 1))
        self.quantize = Quantize(dim, codes)
        self.decoder = nn.Sequential(nn.Conv2d(dim, width, 3, padding=1), *[ResBlock(width, 48) for _ in range(4)], nn.ReLU(inplace=True),
                                     nn.ConvTranspose2d(width, width // 2, 4, 2, 1), nn.ReLU(inplace=True), nn.ConvTranspose2d(width // 2, 3, 4, 2, 1))

    def forward(self, x):
        z = self.encoder(x).permute(0, 2, 3, 1)
        q, loss, index = self.quantize(z)
        return self.decoder(q.permute(0, 3, 1, 2)), loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=48)
    args = parser.parse_args()
    torch.manual_seed(0)
    size = 32 if SMALL else 192
    model = VQVAE().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, amsgrad=True)
    for i in range(6):
        image = torch.rand(args.batch_size, 3, size, size).to(device)
        out, latent = model(image)
        reconstruction = F.mse_loss(out, image)
        loss = reconstruction + 0.25 * latent
        model.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{i}: mse {reconstruction.item():.4f} latent {latent.item():.4f}")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
