"""ControlNet training on top of a frozen latent diffusion UNet with a frozen text encoder (accelerate, fp16)."""
import argparse
import copy
import math
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset
from tqdm.auto import tqdm
from transformers import CLIPTextConfig, CLIPTextModel, get_scheduler


def timestep_embedding(t, dim):
    half = dim // 2
    freqs = torch.exp(-math.log(10000) * torch.arange(half, device=t.device) / half)
    a = t[:, None].float() * freqs[None]
    return torch.cat([a.cos(), a.sin()], -1)


class ResBlock(nn.Module):
    def __init__(self, i, o, temb):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(16, i), nn.Conv2d(i, o, 3, padding=1)
        self.time = nn.Linear(temb, o)
        self.norm2, self.conv2 = nn.GroupNorm(16, o), nn.Conv2d(o, o, 3, padding=1)
        self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x, temb):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(temb))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class Attention(nn.Module):
    def __init__(self, dim, ctx, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = nn.Linear(dim, dim, bias=False), nn.Linear(ctx, dim, bias=False), nn.Linear(ctx, dim, bias=False)
        self.out = nn.Linear(dim, dim)

    def forward(self, x, ctx):
        b, n, d = x.shape
        q, k, v = (t.view(b, -1, self.heads, d // self.heads).transpose(1, 2) for t in (self.q(x), self.k(ctx), self.v(ctx)))
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))


class SpatialTransformer(nn.Module):
    def __init__(self, dim, ctx, heads=8):
        super().__init__()
        self.norm = nn.GroupNorm(16, dim)
        self.proj_in, self.proj_out = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.n1, self.n2, self.n3 = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn1, self.attn2 = Attention(dim, dim, heads), Attention(dim, ctx, heads)
        self.ff_in, self.ff_out = nn.Linear(dim, dim * 8), nn.Linear(dim * 4, dim)

    def forward(self, x, ctx):
        b, c, h, w = x.shape
        t = self.proj_in(self.norm(x).flatten(2).transpose(1, 2))
        y = self.n1(t)
        t = t + self.attn1(y, y)
        t = t + self.attn2(self.n2(t), ctx)
        a, g = self.ff_in(self.n3(t)).chunk(2, -1)
        t = t + self.ff_out(a * F.gelu(g))
        return x + self.proj_out(t).transpose(1, 2).view(b, c, h, w)


class DownPath(nn.Module):
    def __init__(self, ch, mult, ctx):
        super().__init__()
        temb = ch * 4
        self.ch = ch
        self.time = nn.Sequential(nn.Linear(ch, temb), nn.SiLU(), nn.Linear(temb, temb))
        self.conv_in = nn.Conv2d(4, ch, 3, padding=1)
        self.blocks, self.skips, c = nn.ModuleList(), [ch], ch
        for lvl, m in enumerate(mult):
            for _ in range(2):
                self.blocks.append(nn.ModuleList([ResBlock(c, ch * m, temb), SpatialTransformer(ch * m, ctx)]))
                c = ch * m
                self.skips.append(c)
            if lvl < len(mult) - 1:
                self.blocks.append(nn.ModuleList([nn.Conv2d(c, c, 3, stride=2, padding=1)]))
                self.skips.append(c)
        self.mid1, self.mid_attn, self.mid2 = ResBlock(c, c, temb), SpatialTransformer(c, ctx), ResBlock(c, c, temb)
        self.out_ch = c

    def forward(self, x, t, ctx, hint=None):
        temb = self.time(timestep_embedding(t, self.ch).to(x.dtype))
        h = self.conv_in(x)
        if hint is not None:
            h = h + hint
        skips = [h]
        for b in self.blocks:
            h = b[1](b[0](h, temb), ctx) if len(b) == 2 else b[0](h)
            skips.append(h)
        h = self.mid2(self.mid_attn(self.mid1(h, temb), ctx), temb)
        return h, skips, temb


class UNet(nn.Module):
    def __init__(self, ch=192, mult=(1, 2, 4), ctx=512):
        super().__init__()
        self.down = DownPath(ch, mult, ctx)
        skips, c = list(self.down.skips), self.down.out_ch
        self.up = nn.ModuleList()
        for lvl, m in reversed(list(enumerate(mult))):
            for j in range(3):
                blk = [ResBlock(c + skips.pop(), ch * m, ch * 4), SpatialTransformer(ch * m, ctx)]
                c = ch * m
                if j == 2 and lvl > 0:
                    blk.append(nn.Conv2d(c, c, 3, padding=1))
                self.up.append(nn.ModuleList(blk))
        self.norm, self.conv_out = nn.GroupNorm(16, c), nn.Conv2d(c, 4, 3, padding=1)

    def forward(self, x, t, ctx, control=None):
        h, skips, temb = self.down(x, t, ctx)
        if control is not None:
            skips = [s + c for s, c in zip(skips, control[:-1])]
            h = h + control[-1]
        for b in self.up:
            h = b[1](b[0](torch.cat([h, skips.pop()], 1), temb), ctx)
            if len(b) == 3:
                h = b[2](F.interpolate(h, scale_factor=2.0, mode="nearest"))
        return self.conv_out(F.silu(self.norm(h)))


def zero_module(m):
    for p in m.parameters():
        nn.init.zeros_(p)
    return m


class ControlNet(nn.Module):
    def __init__(self, unet):
        super().__init__()
        self.down = copy.deepcopy(unet.down)
        chans, layers, i = [16, 32, 96, 192], [nn.Conv2d(3, 16, 3, padding=1), nn.SiLU()], 16
        for o in chans[1:]:
            layers += [nn.Conv2d(i, i, 3, padding=1), nn.SiLU(), nn.Conv2d(i, o, 3, padding=1, stride=2), nn.SiLU()]
            i = o
        self.hint = nn.Sequential(*layers, zero_module(nn.Conv2d(i, self.down.ch, 3, padding=1)))
        self.zero = nn.ModuleList([zero_module(nn.Conv2d(c, c, 1)) for c in self.down.skips + [self.down.out_ch]])

    def forward(self, x, t, ctx, cond):
        h, skips, _ = self.down(x, t, ctx, self.hint(cond))
        return [z(s) for z, s in zip(self.zero, skips + [h])]


class Fill50k(Dataset):
    def __init__(self, n, res, vocab):
        g = torch.Generator().manual_seed(0)
        self.latents = torch.randn(n, 4, res // 8, res // 8, generator=g)
        self.low = torch.rand(n, 3, res // 16, res // 16, generator=g)
        self.ids = torch.randint(1, vocab - 1, (n, 77), generator=g)
        self.res = res

    def __len__(self):
        return len(self.latents)

    def __getitem__(self, i):
        return {"latents": self.latents[i], "input_ids": self.ids[i], "conditioning": F.interpolate(self.low[i:i + 1], size=self.res)[0]}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--resolution", type=int, default=384)
    ap.add_argument("--channels", type=int, default=192)
    ap.add_argument("--ctx", type=int, default=512)
    ap.add_argument("--text_layers", type=int, default=8)
    ap.add_argument("--train_batch_size", type=int, default=6)
    ap.add_argument("--n", type=int, default=192)
    ap.add_argument("--max_train_steps", type=int, default=30)
    ap.add_argument("--validation_steps", type=int, default=15)
    ap.add_argument("--gradient_accumulation_steps", type=int, default=2)
    args = ap.parse_args()
    accelerator = Accelerator(mixed_precision="fp16", gradient_accumulation_steps=args.gradient_accumulation_steps)
    set_seed(0)
    vocab = 8000
    text_encoder = CLIPTextModel(CLIPTextConfig(vocab_size=vocab, hidden_size=args.ctx, intermediate_size=args.ctx * 4, num_hidden_layers=args.text_layers,
                                                num_attention_heads=8, eos_token_id=vocab - 1))
    unet = UNet(args.channels, ctx=args.ctx)
    controlnet = ControlNet(unet)
    text_encoder.requires_grad_(False)
    unet.requires_grad_(False)
    controlnet.train()
    weight_dtype = torch.float16 if accelerator.mixed_precision == "fp16" else torch.float32
    unet.to(accelerator.device, dtype=weight_dtype)
    text_encoder.to(accelerator.device, dtype=weight_dtype)

    optimizer = torch.optim.AdamW(controlnet.parameters(), lr=1e-5, weight_decay=1e-2)
    loader = DataLoader(Fill50k(args.n, args.resolution, vocab), shuffle=True, batch_size=args.train_batch_size, num_workers=1)
    lr_scheduler = get_scheduler("constant", optimizer=optimizer)
    controlnet, optimizer, loader, lr_scheduler = accelerator.prepare(controlnet, optimizer, loader, lr_scheduler)
    betas = torch.linspace(0.00085 ** 0.5, 0.012 ** 0.5, 1000) ** 2
    alphas = torch.cumprod(1 - betas, 0).to(accelerator.device)
    print(f"controlnet {sum(p.numel() for p in controlnet.parameters()) / 1e6:.0f}M, unet {sum(p.numel() for p in unet.parameters()) / 1e6:.0f}M")

    @torch.no_grad()
    def log_validation(batch, n=2, steps=12, scale=5.0):
        net = accelerator.unwrap_model(controlnet)
        cond = batch["conditioning"][:n].repeat(2, 1, 1, 1)
        ids = torch.cat([batch["input_ids"][:n], torch.zeros_like(batch["input_ids"][:n])])
        x = torch.randn(n, *batch["latents"].shape[1:], device=accelerator.device)
        with torch.autocast(accelerator.device.type, dtype=torch.float16, enabled=weight_dtype == torch.float16):
            ctx = text_encoder(ids)[0]
            ts = torch.linspace(999, 0, steps, device=accelerator.device).long()
            for i, t in enumerate(ts):
                xx, tt = torch.cat([x, x]), t.repeat(2 * n)
                eps_c, eps_u = unet(xx, tt, ctx, net(xx, tt, ctx, cond)).float().chunk(2)
                eps = eps_u + scale * (eps_c - eps_u)
                a = alphas[t]
                a_prev = alphas[ts[i + 1]] if i + 1 < steps else torch.ones_like(a)
                x0 = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-5, 5)
                x = a_prev.sqrt() * x0 + (1 - a_prev).sqrt() * eps
        return x

    global_step, out = 0, tempfile.mkdtemp()
    bar = tqdm(total=args.max_train_steps)
    while global_step < args.max_train_steps:
        for batch in loader:
            with accelerator.accumulate(controlnet):
                latents = batch["latents"].to(dtype=weight_dtype)
                noise = torch.randn_like(latents)
                t = torch.randint(0, 1000, (latents.shape[0],), device=latents.device)
                a = alphas[t][:, None, None, None]
                noisy = (a.sqrt() * latents.float() + (1 - a).sqrt() * noise.float()).to(weight_dtype)
                ctx = text_encoder(batch["input_ids"], return_dict=False)[0]
                control = controlnet(noisy, t, ctx, batch["conditioning"].to(weight_dtype))
                pred = unet(noisy, t, ctx, [c.to(weight_dtype) for c in control])
                loss = F.mse_loss(pred.float(), noise.float(), reduction="mean")
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(controlnet.parameters(), 1.0)
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                bar.update(1)
                global_step += 1
                if global_step % args.validation_steps == 0:
                    log_validation(batch)
                    torch.save(accelerator.unwrap_model(controlnet).state_dict(), os.path.join(out, f"controlnet-{global_step}.pt"))
            bar.set_postfix(loss=loss.detach().item(), lr=lr_scheduler.get_last_lr()[0])
            if global_step >= args.max_train_steps:
                break
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
