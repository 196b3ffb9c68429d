"""Class-conditional diffusion with a UNet (classifier-free guidance), bf16 autocast, EMA. 64x64 images."""
import copy
import math
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

IMG_SIZE = 64
BATCH_SIZE = 32
EPOCHS = 2
LR = 3e-4
N_IMAGES = 768
NUM_CLASSES = 10
NOISE_STEPS = 1000
SAMPLE_STEPS = 25
N_SAMPLES = 16
BASE = 128


class Images(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(0)
        self.labels = torch.randint(0, NUM_CLASSES, (n,), generator=g)
        self.small = torch.rand(n, 3, 8, 8, generator=g)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = F.interpolate(self.small[i: i + 1], size=IMG_SIZE, mode="bilinear")[0]
        return img * 2 - 1, self.labels[i]


def timestep_embedding(t, dim):
    half = dim // 2
    freqs = torch.exp(-math.log(10000) * torch.arange(half, device=t.device) / half)
    args = t[:, None].float() * freqs[None]
    return torch.cat([args.sin(), args.cos()], dim=-1)


class ResBlock(nn.Module):
    def __init__(self, cin, cout, emb, dropout=0.1):
        super().__init__()
        self.norm1 = nn.GroupNorm(32, cin)
        self.conv1 = nn.Conv2d(cin, cout, 3, padding=1)
        self.emb = nn.Linear(emb, cout)
        self.norm2 = nn.GroupNorm(32, cout)
        self.drop = nn.Dropout(dropout)
        self.conv2 = nn.Conv2d(cout, cout, 3, padding=1)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, e):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.emb(F.silu(e))[:, :, None, None]
        h = self.conv2(self.drop(F.silu(self.norm2(h))))
        return h + self.skip(x)


class Attention(nn.Module):
    def __init__(self, c, heads=4):
        super().__init__()
        self.norm = nn.GroupNorm(32, c)
        self.mha = nn.MultiheadAttention(c, heads, batch_first=True)

    def forward(self, x):
        b, c, h, w = x.shape
        y = self.norm(x).flatten(2).transpose(1, 2)
        y, _ = self.mha(y, y, y, need_weights=False)
        return x + y.transpose(1, 2).reshape(b, c, h, w)


class UNet(nn.Module):
    def __init__(self, base=BASE, mults=(1, 2, 2, 4), attn_at=(2, 3), num_classes=NUM_CLASSES):
        super().__init__()
        emb = base * 4
        self.base = base
        self.time = nn.Sequential(nn.Linear(base, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.label = nn.Embedding(num_classes + 1, emb)
        self.inp = nn.Conv2d(3, base, 3, padding=1)
        self.downs = nn.ModuleList()
        chans = [base]
        c = base
        for i, m in enumerate(mults):
            for _ in range(2):
                self.downs.append(nn.ModuleList([
                    ResBlock(c, base * m, emb), Attention(base * m) if i in attn_at else nn.Identity()]))
                c = base * m
                chans.append(c)
            if i < len(mults) - 1:
                self.downs.append(nn.ModuleList([nn.Conv2d(c, c, 3, stride=2, padding=1)]))
                chans.append(c)
        self.mid1, self.mid_attn, self.mid2 = ResBlock(c, c, emb), Attention(c), ResBlock(c, c, emb)
        self.ups = nn.ModuleList()
        for i, m in reversed(list(enumerate(mults))):
            for j in range(3):
                self.ups.append(nn.ModuleList([
                    ResBlock(c + chans.pop(), base * m, emb),
                    Attention(base * m) if i in attn_at else nn.Identity(),
                    nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(base * m, base * m, 3, padding=1))
                    if j == 2 and i > 0 else nn.Identity()]))
                c = base * m
        self.out = nn.Sequential(nn.GroupNorm(32, c), nn.SiLU(), nn.Conv2d(c, 3, 3, padding=1))

    def forward(self, x, t, y):
        e = self.time(timestep_embedding(t, self.base)) + self.label(y)
        h = self.inp(x)
        hs = [h]
        for block in self.downs:
            if len(block) == 1:
                h = block[0](h)
            else:
                h = block[1](block[0](h, e))
            hs.append(h)
        h = self.mid2(self.mid_attn(self.mid1(h, e)), e)
        for res, attn, up in self.ups:
            h = up(attn(res(torch.cat([h, hs.pop()], dim=1), e)))
        return self.out(h)


class Diffusion:
    def __init__(self, device):
        beta = torch.linspace(1e-4, 0.02, NOISE_STEPS, device=device)
        self.alpha_hat = torch.cumprod(1 - beta, dim=0)
        self.device = device

    def noise_images(self, x, t):
        a = self.alpha_hat[t][:, None, None, None]
        eps = torch.randn_like(x)
        return a.sqrt() * x + (1 - a).sqrt() * eps, eps

    @torch.no_grad()
    def sample(self, model, labels, cfg_scale=3.0):
        model.eval()
        n = len(labels)
        x = torch.randn(n, 3, IMG_SIZE, IMG_SIZE, device=self.device)
        null = torch.full_like(labels, NUM_CLASSES)
        steps = torch.linspace(NOISE_STEPS - 1, 0, SAMPLE_STEPS).long()
        for i, s in enumerate(steps):
            t = torch.full((n,), int(s), device=self.device)
            with torch.autocast(self.device.type, dtype=torch.bfloat16):
                eps = model(x, t, labels)
                uncond = model(x, t, null)
            eps = torch.lerp(uncond.float(), eps.float(), cfg_scale)
            a = self.alpha_hat[s]
            a_prev = self.alpha_hat[steps[i + 1]] if i + 1 < len(steps) else torch.tensor(1.0, device=self.device)
            x0 = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-1, 1)
            x = a_prev.sqrt() * x0 + (1 - a_prev).sqrt() * eps
        return ((x.clamp(-1, 1) + 1) * 127.5).type(torch.uint8)


def update_ema(ema, model, decay=0.995):
    for pe, p in zip(ema.parameters(), model.parameters()):
        pe.data.mul_(decay).add_(p.data, alpha=1 - decay)


def main():
    torch.manual_seed(42)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(Images(N_IMAGES), BATCH_SIZE, shuffle=True, drop_last=True, num_workers=1)
    model = UNet().to(device)
    ema_model = copy.deepcopy(model).eval().requires_grad_(False)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f}M parameters")
    diffusion = Diffusion(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=LR, steps_per_epoch=len(loader), epochs=EPOCHS)
    mse = nn.MSELoss()

    with tempfile.TemporaryDirectory() as tmp:
        for epoch in range(EPOCHS):
            model.train()
            pbar = tqdm(loader)
            for images, labels in pbar:
                images, labels = images.to(device), labels.to(device)
                t = torch.randint(1, NOISE_STEPS, (len(images),), device=device)
                x_t, noise = diffusion.noise_images(images, t)
                drop = torch.rand(len(labels), device=device) < 0.1
                labels = torch.where(drop, NUM_CLASSES, labels)
                with torch.autocast(device.type, dtype=torch.bfloat16):
                    pred = model(x_t, t, labels)
                    loss = mse(pred, noise)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                scheduler.step()
                update_ema(ema_model, model)
                pbar.set_postfix(MSE=loss.item())
            labels = torch.arange(N_SAMPLES, device=device) % NUM_CLASSES
            sampled = diffusion.sample(ema_model, labels)
            torch.save(sampled.cpu(), os.path.join(tmp, f"{epoch}.pt"))
            torch.save(model.state_dict(), os.path.join(tmp, "ckpt.pt"))
            torch.save(ema_model.state_dict(), os.path.join(tmp, "ema_ckpt.pt"))

    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
