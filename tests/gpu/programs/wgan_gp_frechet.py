# SPDX-License-Identifier: Apache-2.0
"""WGAN-GP on 64x64 pictures, with a sample grid and a Frechet distance (Inception features) after each epoch."""
import argparse
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.models import inception_v3, resnet18
from torchvision.utils import save_image

SMALL = os.environ.get("SMALL") == "1"
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


class Faces(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return F.interpolate(torch.rand(1, 3, 8, 8, generator=g), 64, mode="bilinear")[0] * 2 - 1


def generator(z, ngf):
    layers = [nn.ConvTranspose2d(z, ngf * 8, 4, 1, 0, bias=False), nn.BatchNorm2d(ngf * 8), nn.ReLU(True)]
    for i in (8, 4, 2):
        layers += [nn.ConvTranspose2d(ngf * i, ngf * i // 2, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf * i // 2), nn.ReLU(True)]
    return nn.Sequential(*layers, nn.ConvTranspose2d(ngf, 3, 4, 2, 1), nn.Tanh())


def critic(ndf):
    layers = [nn.Conv2d(3, ndf, 4, 2, 1), nn.LeakyReLU(0.2)]
    size = 32
    for i in (1, 2, 4):
        size //= 2
        layers += [nn.Conv2d(ndf * i, ndf * i * 2, 4, 2, 1), nn.LayerNorm([ndf * i * 2, size, size]), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Conv2d(ndf * 8, 1, 4), nn.Flatten())


def gradient_penalty(D, real, fake):
    eps = torch.rand(len(real), 1, 1, 1, device=device)
    x = (eps * real + (1 - eps) * fake).requires_grad_(True)
    out = D(x)
    grads = torch.autograd.grad(out, x, torch.ones_like(out), create_graph=True, retain_graph=True)[0]
    return ((grads.flatten(1).norm(2, dim=1) - 1) ** 2).mean()


def frechet(a, b):
    ma, mb = a.mean(0), b.mean(0)
    ca, cb = torch.cov(a.T), torch.cov(b.T)
    # trace of the root of the product from the eigenvalues of the symmetric form
    va, ua = torch.linalg.eigh(ca)
    root = (ua * va.clamp(min=0).sqrt()) @ ua.T
    eig = torch.linalg.eigvalsh(root @ cb @ root).clamp(min=0)
    return ((ma - mb) ** 2).sum() + ca.trace() + cb.trace() - 2 * eig.sqrt().sum()


@torch.no_grad()
def features(net, images):
    side = 64 if SMALL else 299
    return net(F.interpolate(images, (side, side), mode="bilinear"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--n-critic", type=int, default=3)
    parser.add_argument("--gp", type=float, default=10.0)
    args = parser.parse_args()
    torch.manual_seed(999)
    if SMALL:
        args.batch_size = 8
    z, width = 128, 8 if SMALL else 128
    G, D = generator(z, width).to(device), critic(width).to(device)
    extractor = (resnet18(weights=None) if SMALL else inception_v3(weights=None, init_weights=False, transform_input=True)).to(device).eval()
    extractor.fc = nn.Identity()
    opt_g = torch.optim.Adam(G.parameters(), lr=1e-4, betas=(0.0, 0.9))
    opt_d = torch.optim.Adam(D.parameters(), lr=1e-4, betas=(0.0, 0.9))
    loader = DataLoader(Faces(args.batch_size * (3 if SMALL else 15)), args.batch_size, shuffle=True, drop_last=True, num_workers=0 if SMALL else 4)
    fixed = torch.randn(64, z, 1, 1, device=device)
    folder = tempfile.mkdtemp()
    for epoch in range(2):
        for i, real in enumerate(loader):
            real = real.to(device)
            fake = G(torch.randn(len(real), z, 1, 1, device=device))
            d_loss = D(fake.detach()).mean() - D(real).mean() + args.gp * gradient_penalty(D, real, fake.detach())
            opt_d.zero_grad()
            d_loss.backward()
            opt_d.step()
            if (i + 1) % args.n_critic == 0:
                g_loss = -D(G(torch.randn(len(real), z, 1, 1, device=device))).mean()
                opt_g.zero_grad()
                g_loss.backward()
                opt_g.step()
        G.eval()
        with torch.no_grad():
            save_image(G(fixed), os.path.join(folder, f"{epoch}.png"), normalize=True)
            real_f, fake_f = [], []
            for j, real in enumerate(loader):
                if j == 4:
                    break
                real_f.append(features(extractor, real.to(device)))
                fake_f.append(features(extractor, G(torch.randn(len(real), z, 1, 1, device=device))))
            fid = frechet(torch.cat(real_f).double(), torch.cat(fake_f).double())
        G.train()
        print(f"[{epoch}] D {d_loss.item():.3f} G {g_loss.item():.3f} FID {fid.item():.3f}")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
