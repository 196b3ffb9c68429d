"""U-ViT diffusion transformer with long skips, class-conditional, v-prediction; accelerate, bf16, EMA, DDIM samples."""
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
from torchvision.utils import save_image
from tqdm.auto import tqdm


class Config:
    image_size = 64
    patch = 4
    dim = 512
    depth = 12
    heads = 8
    classes = 10
    train_batch_size = 64
    num_images = 2048
    num_epochs = 2
    lr = 2e-4
    warmup = 10
    ema_decay = 0.999
    sample_steps = 25
    sample_batch = 20
    cfg_scale = 2.0
    mixed_precision = "bf16"
    seed = 0


def timestep_embedding(t, dim):
    half = dim // 2
    freqs = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32, device=t.device) / half)
    args = t[:, None].float() * freqs[None]
    return torch.cat([torch.cos(args), torch.sin(args)], dim=-1)


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, dim * 3, bias=False)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        x = F.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).reshape(b, n, c))


class Block(nn.Module):
    def __init__(self, dim, heads, skip=False):
        super().__init__()
        self.norm1, self.attn, self.norm2 = nn.LayerNorm(dim), Attention(dim, heads), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, dim * 4), nn.GELU(), nn.Linear(dim * 4, dim))
        self.skip_linear = nn.Linear(2 * dim, dim) if skip else None

    def forward(self, x, skip=None):
        if self.skip_linear is not None:
            x = self.skip_linear(torch.cat([x, skip], dim=-1))
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class UViT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.p, self.dim, self.size = cfg.patch, cfg.dim, cfg.image_size
        self.patch_embed = nn.Conv2d(3, cfg.dim, cfg.patch, cfg.patch)
        n = (cfg.image_size // cfg.patch) ** 2
        self.label_emb = nn.Embedding(cfg.classes + 1, cfg.dim)
        self.pos_embed = nn.Parameter(torch.randn(1, 2 + n, cfg.dim) * 0.02)
        self.in_blocks = nn.ModuleList(Block(cfg.dim, cfg.heads) for _ in range(cfg.depth // 2))
        self.mid = Block(cfg.dim, cfg.heads)
        self.out_blocks = nn.ModuleList(Block(cfg.dim, cfg.heads, skip=True) for _ in range(cfg.depth // 2))
        self.norm = nn.LayerNorm(cfg.dim)
        self.decoder_pred = nn.Linear(cfg.dim, cfg.patch ** 2 * 3)
        self.final_layer = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x, t, y):
        h = self.size // self.p
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        tok = torch.stack([self.label_emb(y), timestep_embedding(t, self.dim)], 1)
        x = torch.cat([tok.to(x.dtype), x], 1) + self.pos_embed
        skips = []
        for blk in self.in_blocks:
            x = blk(x)
            skips.append(x)
        x = self.mid(x)
        for blk in self.out_blocks:
            x = blk(x, skips.pop())
        x = self.decoder_pred(self.norm(x))[:, 2:]
        x = x.reshape(-1, h, h, self.p, self.p, 3).permute(0, 5, 1, 3, 2, 4).reshape(-1, 3, self.size, self.size)
        return self.final_layer(x)


class Toy(Dataset):
    def __init__(self, n, size, classes):
        g = torch.Generator().manual_seed(1)
        self.y = torch.randint(0, classes, (n,), generator=g)
        self.z = torch.rand(n, 3, 6, 6, generator=g) * 2 - 1
        self.size = size

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = F.interpolate(self.z[i][None], size=(self.size, self.size), mode="bilinear")[0]
        return {"images": x + 0.05 * self.y[i], "labels": self.y[i]}


class CosineSchedule:
    def __init__(self, T=1000):
        s = 0.008
        f = torch.cos((torch.linspace(0, 1, T + 1) + s) / (1 + s) * math.pi / 2) ** 2
        self.acp = (f / f[0])[1:].clamp(1e-5, 0.9999)
        self.T = T


@torch.no_grad()
def sample(model, cfg, schedule, device, generator):
    n = cfg.sample_batch
    x = torch.randn(n, 3, cfg.image_size, cfg.image_size, device=device, generator=generator)
    y = torch.arange(n, device=device) % cfg.classes
    null = torch.full_like(y, cfg.classes)
    ts = torch.linspace(schedule.T - 1, 0, cfg.sample_steps).long()
    acp = schedule.acp.to(device)
    for k, t in enumerate(ts):
        tt = torch.full((n * 2,), int(t), device=device)
        v = model(torch.cat([x, x]), tt, torch.cat([y, null]))
        vc, vu = v.float().chunk(2)
        v = vu + cfg.cfg_scale * (vc - vu)
        a = acp[t]
        x0 = (a.sqrt() * x - (1 - a).sqrt() * v).clamp(-1, 1)
        eps = (1 - a).sqrt() * x + a.sqrt() * v
        an = acp[ts[k + 1]] if k + 1 < len(ts) else torch.ones((), device=device)
        x = an.sqrt() * x0 + (1 - an).sqrt() * eps
    return x


def train_loop(cfg):
    set_seed(cfg.seed)
    out = tempfile.mkdtemp()
    accelerator = Accelerator(mixed_precision=cfg.mixed_precision, project_dir=out)
    model = UViT(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=0.03, betas=(0.99, 0.999))
    loader = DataLoader(Toy(cfg.num_images, cfg.image_size, cfg.classes), cfg.train_batch_size, shuffle=True, drop_last=True)
    sched = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / cfg.warmup))
    ema = copy.deepcopy(model).eval().requires_grad_(False).to(accelerator.device)
    model, optimizer, loader, sched = accelerator.prepare(model, optimizer, loader, sched)
    schedule = CosineSchedule()
    acp = schedule.acp.to(accelerator.device)
    step = 0
    for epoch in range(cfg.num_epochs):
        model.train()
        bar = tqdm(total=len(loader), desc=f"Epoch {epoch}", disable=not accelerator.is_local_main_process)
        for batch in loader:
            x0, y = batch["images"], batch["labels"]
            y = torch.where(torch.rand(y.shape, device=y.device) < 0.1, cfg.classes, y)
            t = torch.randint(0, schedule.T, (x0.shape[0],), device=x0.device)
            a = acp[t].view(-1, 1, 1, 1)
            noise = torch.randn_like(x0)
            xt = a.sqrt() * x0 + (1 - a).sqrt() * noise
            target = a.sqrt() * noise - (1 - a).sqrt() * x0
            with accelerator.accumulate(model):
                loss = F.mse_loss(model(xt, t, y).float(), target)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                sched.step()
                optimizer.zero_grad()
            with torch.no_grad():
                for pe, p in zip(ema.parameters(), accelerator.unwrap_model(model).parameters()):
                    pe.lerp_(p.detach(), 1 - cfg.ema_decay)
            step += 1
            bar.update(1)
            bar.set_postfix(loss=loss.detach().item(), lr=sched.get_last_lr()[0], step=step)
        bar.close()
        if accelerator.is_main_process:
            g = torch.Generator(device=accelerator.device).manual_seed(cfg.seed)
            with accelerator.autocast():
                imgs = sample(ema, cfg, schedule, accelerator.device, g)
            save_image(imgs / 2 + 0.5, os.path.join(out, f"{epoch:04d}.png"), nrow=10)
            accelerator.save_state(os.path.join(out, f"ckpt_{epoch}"))


if __name__ == "__main__":
    train_loop(Config())
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
