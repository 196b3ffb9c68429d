"""Text-conditioned latent diffusion: frozen autoencoder and text encoder, a UNet with cross attention is trained."""
import argparse
import math
from copy import deepcopy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from transformers import CLIPTextConfig, CLIPTextModel


class Captions(Dataset):
    def __init__(self, n, size, vocab=49408, length=77):
        self.n, self.size, self.vocab, self.length = n, size, vocab, length

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        ids = torch.full((self.length,), self.vocab - 1)
        k = int(torch.randint(4, self.length, (), generator=g))
        ids[:k] = torch.randint(1, self.vocab - 2, (k,), generator=g)
        return torch.rand(3, self.size, self.size, generator=g) * 2 - 1, ids


class Encoder(nn.Module):
    """Factor-8 image encoder, standing in for the first-stage model."""

    def __init__(self, ch=128, latent=4):
        super().__init__()
        layers = [nn.Conv2d(3, ch, 3, padding=1)]
        for mult in (1, 2, 4):
            layers += [nn.GroupNorm(32, ch if mult == 1 else ch * mult // 2), nn.SiLU(),
                       nn.Conv2d(ch if mult == 1 else ch * mult // 2, ch * mult, 3, stride=2, padding=1)]
        self.net = nn.Sequential(*layers, nn.GroupNorm(32, ch * 4), nn.SiLU(), nn.Conv2d(ch * 4, 2 * latent, 3, padding=1))

    def forward(self, x):
        mean, logvar = self.net(x).chunk(2, 1)
        return mean + torch.randn_like(mean) * torch.exp(0.5 * logvar.clamp(-30, 20))


class ResBlock(nn.Module):
    def __init__(self, cin, cout, temb):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(32, cin), nn.Conv2d(cin, cout, 3, padding=1)
        self.t = nn.Linear(temb, cout)
        self.n2, self.c2 = nn.GroupNorm(32, cout), nn.Conv2d(cout, cout, 3, padding=1)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x))) + self.t(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.c2(F.silu(self.n2(h)))


class SpatialTransformer(nn.Module):
    def __init__(self, dim, ctx, heads):
        super().__init__()
        self.norm = nn.GroupNorm(32, dim)
        self.n1, self.n2, self.n3 = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.self_attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.cross_attn = nn.MultiheadAttention(dim, heads, kdim=ctx, vdim=ctx, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, ctx):
        b, c, h, w = x.shape
        y = self.norm(x).flatten(2).transpose(1, 2)
        z = self.n1(y)
        y = y + self.self_attn(z, z, z, need_weights=False)[0]
        y = y + self.cross_attn(self.n2(y), ctx, ctx, need_weights=False)[0]
        y = y + self.ff(self.n3(y))
        return x + y.transpose(1, 2).reshape(b, c, h, w)


class UNet(nn.Module):
    def __init__(self, base=192, mults=(1, 2, 4), ctx=512, latent=4):
        super().__init__()
        temb = 4 * base
        self.base = base
        self.time = nn.Sequential(nn.Linear(base, temb), nn.SiLU(), nn.Linear(temb, temb))
        self.inp = nn.Conv2d(latent, base, 3, padding=1)
        chs, prev = [base], base
        self.down = nn.ModuleList()
        for i, m in enumerate(mults):
            for _ in range(2):
                self.down.append(nn.ModuleList([ResBlock(prev, base * m, temb), SpatialTransformer(base * m, ctx, 8)]))
                prev = base * m
                chs.append(prev)
            if i < len(mults) - 1:
                self.down.append(nn.Conv2d(prev, prev, 3, stride=2, padding=1))
                chs.append(prev)
        self.mid1, self.mid_attn, self.mid2 = ResBlock(prev, prev, temb), SpatialTransformer(prev, ctx, 8), ResBlock(prev, prev, temb)
        self.up = nn.ModuleList()
        for i, m in reversed(list(enumerate(mults))):
            for k in range(3):
                self.up.append(nn.ModuleList([ResBlock(prev + chs.pop(), base * m, temb), SpatialTransformer(base * m, ctx, 8)]))
                prev = base * m
            if i > 0:
                self.up.append(nn.Conv2d(prev, prev, 3, padding=1))
        self.out = nn.Sequential(nn.GroupNorm(32, prev), nn.SiLU(), nn.Conv2d(prev, latent, 3, padding=1))

    def forward(self, x, t, ctx):
        freqs = torch.exp(-math.log(10000) * torch.arange(self.base // 2, device=x.device) / (self.base // 2))
        emb = t.float()[:, None] * freqs[None]
        emb = self.time(torch.cat([emb.cos(), emb.sin()], -1))
        h = self.inp(x)
        hs = [h]
        for layer in self.down:
            h = layer(h) if isinstance(layer, nn.Conv2d) else layer[1](layer[0](h, emb), ctx)
            hs.append(h)
        h = self.mid2(self.mid_attn(self.mid1(h, emb), ctx), emb)
        for layer in self.up:
            if isinstance(layer, nn.Conv2d):
                h = layer(F.interpolate(h, scale_factor=2, mode="nearest"))
            else:
                h = layer[1](layer[0](torch.cat([h, hs.pop()], 1), emb), ctx)
        return self.out(h)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--train-batch-size", "--batch-size", dest="batch_size", type=int, default=16)
    p.add_argument("--resolution", type=int, default=256)
    p.add_argument("--base", type=int, default=192)
    p.add_argument("--images", type=int, default=1280)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--sample-steps", type=int, default=20)
    args = p.parse_args()
    device = torch.device("cuda")
    torch.manual_seed(0)

    text = CLIPTextModel(CLIPTextConfig(hidden_size=512, num_hidden_layers=12, num_attention_heads=8)).to(device)
    vae = Encoder().to(device)
    text.requires_grad_(False).eval()
    vae.requires_grad_(False).eval()
    unet = UNet(args.base).to(device)
    ema = deepcopy(unet).requires_grad_(False)
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-4, weight_decay=1e-2)
    betas = torch.linspace(0.00085 ** 0.5, 0.012 ** 0.5, 1000, device=device) ** 2
    alphas = (1 - betas).cumprod(0)
    loader = DataLoader(Captions(args.images, args.resolution), args.batch_size, shuffle=True, num_workers=4, drop_last=True)

    for epoch in range(args.epochs):
        unet.train()
        for step, (images, ids) in enumerate(loader):
            images, ids = images.to(device), ids.to(device)
            with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
                latents = vae(images).float() * 0.18215
                ctx = text(ids).last_hidden_state
            noise = torch.randn_like(latents)
            t = torch.randint(0, 1000, (latents.size(0),), device=device)
            a = alphas[t].view(-1, 1, 1, 1)
            noisy = a.sqrt() * latents + (1 - a).sqrt() * noise
            with torch.autocast("cuda", dtype=torch.bfloat16):
                pred = unet(noisy, t, ctx)
            loss = F.mse_loss(pred.float(), noise)
            loss.backward()
            nn.utils.clip_grad_norm_(unet.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            with torch.no_grad():
                for e, q in zip(ema.parameters(), unet.parameters()):
                    e.lerp_(q, 0.001)
            if step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")

        # a few DDIM samples with classifier-free guidance
        with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
            ids = torch.stack([loader.dataset[i][1] for i in range(4)]).to(device)
            ctx = torch.cat([text(torch.full_like(ids, 49407)).last_hidden_state, text(ids).last_hidden_state])
            x = torch.randn(4, 4, args.resolution // 8, args.resolution // 8, device=device)
            times = torch.linspace(999, 0, args.sample_steps, device=device).long()
            for i, t in enumerate(times):
                eps = ema(x.repeat(2, 1, 1, 1), t.repeat(8), ctx).float()
                eu, ec = eps.chunk(2)
                e = eu + 5.0 * (ec - eu)
                a = alphas[t]
                prev = alphas[times[i + 1]] if i + 1 < len(times) else torch.ones((), device=device)
                x = prev.sqrt() * (x - (1 - a).sqrt() * e) / a.sqrt() + (1 - prev).sqrt() * e
        print(f"epoch {epoch} sample std {x.std().item():.3f}")

    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
