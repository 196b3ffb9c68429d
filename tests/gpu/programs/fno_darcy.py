import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def random_field(n, s, alpha, g):
    """Gaussian random field on the torus."""
    k = torch.fft.fftfreq(s, 1 / s)
    k2 = k[:, None] ** 2 + k[None] ** 2
    spectrum = (k2 + 9) ** (-alpha / 2)
    noise = torch.randn(n, s, s, generator=g)
    field = torch.fft.ifft2(torch.fft.fft2(noise) * spectrum).real
    return field / field.std((1, 2), keepdim=True)


def make_data(n, s, seed):
    g = torch.Generator().manual_seed(seed)
    a = torch.where(random_field(n, s, 2.5, g) > 0, 12.0, 3.0)
    k = torch.fft.fftfreq(s, 1 / s) * 2 * math.pi
    k2 = k[:, None] ** 2 + k[None] ** 2
    k2[0, 0] = 1
    src = 1 / a
    src = src - src.mean((1, 2), keepdim=True)
    u = torch.fft.ifft2(torch.fft.fft2(src) / k2).real * 100
    u = u + 0.3 * u ** 2  # a mild nonlinearity
    return a[..., None] / 12, u[..., None]


class SpectralConv2d(nn.Module):
    def __init__(self, i, o, m):
        super().__init__()
        self.m, self.o = m, o
        scale = 1 / (i * o)
        self.w1 = nn.Parameter(scale * torch.rand(i, o, m, m, dtype=torch.cfloat))
        self.w2 = nn.Parameter(scale * torch.rand(i, o, m, m, dtype=torch.cfloat))

    def forward(self, x):
        b, _, h, w = x.shape
        f = torch.fft.rfft2(x)
        out = torch.zeros(b, self.o, h, w // 2 + 1, dtype=torch.cfloat, device=x.device)
        out[:, :, :self.m, :self.m] = torch.einsum("bixy,ioxy->boxy", f[:, :, :self.m, :self.m], self.w1)
        out[:, :, -self.m:, :self.m] = torch.einsum("bixy,ioxy->boxy", f[:, :, -self.m:, :self.m], self.w2)
        return torch.fft.irfft2(out, s=(h, w))


class FNO(nn.Module):
    def __init__(self, width, modes, layers=4):
        super().__init__()
        self.lift = nn.Linear(3, width)
        self.spectral = nn.ModuleList([SpectralConv2d(width, width, modes) for _ in range(layers)])
        self.local = nn.ModuleList([nn.Conv2d(width, width, 1) for _ in range(layers)])
        self.q1, self.q2 = nn.Linear(width, 128), nn.Linear(128, 1)

    def forward(self, a):
        b, h, w, _ = a.shape
        gy = torch.linspace(0, 1, h, device=a.device).view(1, h, 1, 1).expand(b, h, w, 1)
        gx = torch.linspace(0, 1, w, device=a.device).view(1, 1, w, 1).expand(b, h, w, 1)
        x = self.lift(torch.cat([a, gy, gx], -1)).permute(0, 3, 1, 2)
        for k, (s, l) in enumerate(zip(self.spectral, self.local)):
            x = s(x) + l(x)
            if k < len(self.local) - 1:
                x = F.gelu(x)
        return self.q2(F.gelu(self.q1(x.permute(0, 2, 3, 1))))


class RelativeL2:
    def __call__(self, p, y):
        d = (p - y).flatten(1).norm(dim=1)
        return (d / y.flatten(1).norm(dim=1)).mean()


ap = argparse.ArgumentParser()
ap.add_argument("--batch-size", type=int, default=20)
ap.add_argument("--width", type=int, default=48)
ap.add_argument("--modes", type=int, default=20)
ap.add_argument("--res", type=int, default=128)
ap.add_argument("--n-train", type=int, default=800)
ap.add_argument("--epochs", type=int, default=16)
ap.add_argument("--test-every", type=int, default=2)
args = ap.parse_args()

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
torch.backends.cuda.matmul.allow_tf32 = True
train_loader = DataLoader(TensorDataset(*make_data(args.n_train, args.res, 1)), batch_size=args.batch_size, shuffle=True)
test_loaders = {res: DataLoader(TensorDataset(*make_data(max(4, args.n_train // 20), res, 2)), batch_size=args.batch_size)
                for res in (args.res, 2 * args.res)}
model = FNO(args.width, args.modes).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs * len(train_loader))
criterion = RelativeL2()

for epoch in range(1, args.epochs + 1):
    model.train()
    running = 0.0
    for a, u in train_loader:
        a, u = a.to(device), u.to(device)
        optimizer.zero_grad()
        loss = criterion(model(a), u)
        loss.backward()
        optimizer.step()
        scheduler.step()
        running += loss.item()
    message = f"epoch {epoch} train {running / len(train_loader):.4f}"
    if epoch % args.test_every == 0:
        model.eval()
        with torch.no_grad():
            for res, loader in test_loaders.items():
                errors = [criterion(model(a.to(device)), u.to(device)).item() for a, u in loader]
                message += f" test@{res} {sum(errors) / len(errors):.4f}"
    print(message, flush=True)

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
