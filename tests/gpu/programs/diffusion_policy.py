"""Diffusion policy: camera images and joint state to a chunk of actions; 1D U-Net denoiser, EMA, DDIM evaluation, fp16."""
import argparse
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet18

HORIZON, OBS, ACT, STATE = 16, 2, 7, 9
T = 100


class Demonstrations(Dataset):
    """An arm reaching for a coloured square; the action chunk is a smooth curve to the square's place."""

    def __init__(self, n, size, seed):
        g = torch.Generator().manual_seed(seed)
        self.goal = torch.rand(n, 2, generator=g)
        self.state = torch.randn(n, OBS, STATE, generator=g)
        mix = torch.randn(2, ACT, generator=torch.Generator().manual_seed(0))
        ramp = torch.linspace(0, 1, HORIZON)[None, :, None]
        self.actions = ((self.goal * 2 - 1) @ mix)[:, None] * ramp ** 0.5 * 0.5 + 0.02 * torch.randn(n, HORIZON, ACT, generator=g)
        self.back = (torch.rand(3, size, size, generator=g) * 120).to(torch.uint8)
        self.size = size

    def __len__(self):
        return len(self.goal)

    def __getitem__(self, i):
        x, y = (self.goal[i] * (self.size - 16)).int().tolist()
        img = self.back.clone()
        img[0, y:y + 16, x:x + 16] = 255
        other = img.roll(1, dims=2)
        return torch.stack([other, img]), self.state[i], self.actions[i]


def group_norm_resnet(dim):
    net = resnet18(weights=None, norm_layer=lambda c: nn.GroupNorm(c // 16, c))
    net.fc = nn.Linear(512, dim)
    return net


class FiLMBlock(nn.Module):
    def __init__(self, i, o, cond):
        super().__init__()
        self.a = nn.Sequential(nn.Conv1d(i, o, 5, padding=2), nn.GroupNorm(8, o), nn.Mish())
        self.b = nn.Sequential(nn.Conv1d(o, o, 5, padding=2), nn.GroupNorm(8, o), nn.Mish())
        self.film = nn.Sequential(nn.Mish(), nn.Linear(cond, 2 * o))
        self.skip = nn.Conv1d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x, c):
        scale, shift = self.film(c)[..., None].chunk(2, 1)
        return self.b(self.a(x) * (1 + scale) + shift) + self.skip(x)


class Denoiser(nn.Module):
    def __init__(self, widths, cond):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(256, 1024), nn.Mish(), nn.Linear(1024, 256))
        cond += 256
        dims = [ACT, *widths]
        self.down = nn.ModuleList([nn.ModuleList([FiLMBlock(i, o, cond), FiLMBlock(o, o, cond),
                                                  nn.Conv1d(o, o, 3, 2, 1) if k < len(widths) - 1 else nn.Identity()])
                                   for k, (i, o) in enumerate(zip(dims, widths))])
        self.mid = nn.ModuleList([FiLMBlock(widths[-1], widths[-1], cond) for _ in range(2)])
        self.up = nn.ModuleList([nn.ModuleList([FiLMBlock(2 * o, i, cond), FiLMBlock(i, i, cond), nn.ConvTranspose1d(i, i, 4, 2, 1)])
                                 for i, o in reversed(list(zip(widths[:-1], widths[1:])))])
        self.out = nn.Sequential(nn.Conv1d(widths[0], widths[0], 5, padding=2), nn.GroupNorm(8, widths[0]), nn.Mish(), nn.Conv1d(widths[0], ACT, 1))

    def forward(self, x, t, cond):
        freq = torch.exp(-math.log(10000) * torch.arange(128, device=x.device) / 127)
        emb = t[:, None].float() * freq
        c = torch.cat([self.time(torch.cat([emb.sin(), emb.cos()], 1)), cond], 1)
        x, skips = x.transpose(1, 2), []
        for a, b, pool in self.down:
            x = b(a(x, c), c)
            skips.append(x)
            x = pool(x)
        for m in self.mid:
            x = m(x, c)
        for a, b, up in self.up:
            x = up(b(a(torch.cat([x, skips.pop()], 1), c), c))
        return self.out(x).transpose(1, 2)


class Policy(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.vision = group_norm_resnet(256)
        self.net = Denoiser(widths, OBS * (256 + STATE))
        s = torch.arange(T + 1) / T
        bar = torch.cos((s + 0.008) / 1.008 * math.pi / 2) ** 2
        self.register_buffer("alpha_bar", (bar / bar[0])[1:].clamp(min=1e-4))

    def encode(self, images, state):
        f = self.vision(images.flatten(0, 1).float() / 127.5 - 1).view(len(images), OBS, -1)
        return torch.cat([f, state], -1).flatten(1)

    def forward(self, images, state, actions):
        t = torch.randint(0, T, (len(actions),), device=actions.device)
        noise = torch.randn_like(actions)
        ab = self.alpha_bar[t][:, None, None]
        pred = self.net(ab.sqrt() * actions + (1 - ab).sqrt() * noise, t, self.encode(images, state))
        return F.mse_loss(pred.float(), noise)

    @torch.no_grad()
    def sample(self, images, state, steps=10):
        cond = self.encode(images, state)
        x = torch.randn(len(images), HORIZON, ACT, device=images.device)
        times = torch.linspace(T - 1, 0, steps, device=images.device).long()
        for k, t in enumerate(times):
            ab = self.alpha_bar[t]
            prev = self.alpha_bar[times[k + 1]] if k + 1 < steps else torch.ones_like(ab)
            eps = self.net(x, t.expand(len(x)), cond).float()
            x0 = ((x - (1 - ab).sqrt() * eps) / ab.sqrt()).clamp(-3, 3)
            x = prev.sqrt() * x0 + (1 - prev).sqrt() * eps
        return x


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=128)
    ap.add_argument("--size", type=int, default=128)
    ap.add_argument("--demos", type=int, default=6400)
    ap.add_argument("--widths", type=int, nargs="+", default=[256, 512, 1024])
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--eval-every", type=int, default=2)
    ap.add_argument("--workers", type=int, default=2)
    a = ap.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    train = DataLoader(Demonstrations(a.demos, a.size, 1), a.batch_size, shuffle=True, drop_last=True, num_workers=a.workers, pin_memory=device.type == "cuda")
    test = DataLoader(Demonstrations(a.demos // 20, a.size, 2), a.batch_size)
    policy = Policy(a.widths).to(device)
    ema = copy.deepcopy(policy).eval().requires_grad_(False)
    opt = torch.optim.AdamW(policy.parameters(), lr=1e-4, betas=(0.95, 0.999), weight_decay=1e-6)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, a.epochs * len(train))
    scaler = torch.amp.GradScaler(device.type)
    step = 0
    for epoch in range(1, a.epochs + 1):
        policy.train()
        total = 0.0
        for images, state, actions in train:
            images, state, actions = images.to(device, non_blocking=True), state.to(device), actions.to(device)
            with torch.autocast(device.type, dtype=torch.float16):
                loss = policy(images, state, actions)
            opt.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            sched.step()
            step += 1
            decay = min(0.999, (1 + step) / (10 + step))
            with torch.no_grad():
                torch._foreach_lerp_(list(ema.parameters()), list(policy.parameters()), 1 - decay)
            total += loss.item()
        line = f"epoch {epoch} loss {total / len(train):.4f}"
        if epoch % a.eval_every == 0:
            errors = []
            for images, state, actions in test:
                with torch.autocast(device.type, dtype=torch.float16):
                    out = ema.sample(images.to(device), state.to(device))
                errors.append((out.cpu() - actions).pow(2).mean((1, 2)))
            line += f" action mse {torch.cat(errors).mean().item():.4f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
