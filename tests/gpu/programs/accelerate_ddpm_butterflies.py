"""Unconditional DDPM in the style of the diffusers training tutorial (own UNet2D), accelerate fp16."""
import os
import tempfile
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms
from tqdm.auto import tqdm
from transformers import get_cosine_schedule_with_warmup


@dataclass
class TrainingConfig:
    image_size = 128
    train_batch_size = 16
    eval_batch_size = 8
    num_epochs = 2
    gradient_accumulation_steps = 1
    learning_rate = 1e-4
    lr_warmup_steps = 5
    save_image_epochs = 1
    mixed_precision = "fp16"
    seed = 0
    n_images = 320
    num_inference_steps = 20
    channels = (64, 64, 128, 256, 256)


config = TrainingConfig()


class Butterflies(Dataset):
    def __init__(self, n):
        self.n = n
        self.tf = transforms.Compose([
            transforms.Resize((config.image_size, config.image_size)),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize([0.5], [0.5]),
        ])
        g = torch.Generator().manual_seed(0)
        self.raw = torch.randint(0, 256, (n, 16, 16, 3), generator=g, dtype=torch.uint8).numpy()

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return {"images": self.tf(Image.fromarray(self.raw[i]))}


class ResnetBlock2D(nn.Module):
    def __init__(self, cin, cout, temb):
        super().__init__()
        self.norm1 = nn.GroupNorm(32, cin, eps=1e-6)
        self.conv1 = nn.Conv2d(cin, cout, 3, padding=1)
        self.time_emb_proj = nn.Linear(temb, cout)
        self.norm2 = nn.GroupNorm(32, cout, eps=1e-6)
        self.conv2 = nn.Conv2d(cout, cout, 3, padding=1)
        self.shortcut = nn.Conv2d(cin, cout, 1) if cin != cout else None

    def forward(self, x, temb):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time_emb_proj(F.silu(temb))[:, :, None, None]
        h = self.conv2(F.silu(self.norm2(h)))
        return h + (x if self.shortcut is None else self.shortcut(x))


class AttnBlock(nn.Module):
    def __init__(self, c, head_dim=32):
        super().__init__()
        self.heads = c // head_dim
        self.norm = nn.GroupNorm(32, c)
        self.qkv = nn.Linear(c, 3 * c)
        self.proj = nn.Linear(c, c)

    def forward(self, x):
        b, c, h, w = x.shape
        y = self.norm(x).view(b, c, h * w).transpose(1, 2)
        q, k, v = self.qkv(y).view(b, h * w, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        y = self.proj(y.transpose(1, 2).reshape(b, h * w, c))
        return x + y.transpose(1, 2).reshape(b, c, h, w)


class UNet2D(nn.Module):
    def __init__(self, channels, attn_levels=(3,), layers=2):
        super().__init__()
        self.c0 = channels[0]
        temb = channels[0] * 4
        self.time = nn.Sequential(nn.Linear(channels[0], temb), nn.SiLU(), nn.Linear(temb, temb))
        self.conv_in = nn.Conv2d(3, channels[0], 3, padding=1)
        self.down_res, self.down_attn, self.downsample = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        skips, c = [channels[0]], channels[0]
        for i, ch in enumerate(channels):
            res, att = nn.ModuleList(), nn.ModuleList()
            for _ in range(layers):
                res.append(ResnetBlock2D(c, ch, temb))
                att.append(AttnBlock(ch) if i in attn_levels else nn.Identity())
                c = ch
                skips.append(c)
            self.down_res.append(res)
            self.down_attn.append(att)
            last = i == len(channels) - 1
            self.downsample.append(nn.Identity() if last else nn.Conv2d(c, c, 3, stride=2, padding=1))
            if not last:
                skips.append(c)
        self.mid = nn.ModuleList([ResnetBlock2D(c, c, temb), AttnBlock(c), ResnetBlock2D(c, c, temb)])
        self.up_res, self.up_attn, self.upsample = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for i, ch in reversed(list(enumerate(channels))):
            res, att = nn.ModuleList(), nn.ModuleList()
            for _ in range(layers + 1):
                res.append(ResnetBlock2D(c + skips.pop(), ch, temb))
                att.append(AttnBlock(ch) if i in attn_levels else nn.Identity())
                c = ch
            self.up_res.append(res)
            self.up_attn.append(att)
            self.upsample.append(nn.Conv2d(c, c, 3, padding=1) if i > 0 else nn.Identity())
        self.norm_out = nn.GroupNorm(32, c)
        self.conv_out = nn.Conv2d(c, 3, 3, padding=1)

    def forward(self, x, t):
        half = self.c0 // 2
        freq = torch.exp(-torch.arange(half, device=x.device) * (9.21 / half))
        ang = t.float()[:, None] * freq[None]
        temb = self.time(torch.cat([ang.sin(), ang.cos()], 1))
        h = self.conv_in(x)
        skips = [h]
        for i, (res, att, down) in enumerate(zip(self.down_res, self.down_attn, self.downsample)):
            for r, a in zip(res, att):
                h = a(r(h, temb))
                skips.append(h)
            if i < len(self.down_res) - 1:
                h = down(h)
                skips.append(h)
        h = self.mid[2](self.mid[1](self.mid[0](h, temb)), temb)
        for i, (res, att, up) in enumerate(zip(self.up_res, self.up_attn, self.upsample)):
            for r, a in zip(res, att):
                h = a(r(torch.cat([h, skips.pop()], 1), temb))
            if i < len(self.up_res) - 1:
                h = up(F.interpolate(h, scale_factor=2.0, mode="nearest"))
        return self.conv_out(F.silu(self.norm_out(h)))


class DDPMScheduler:
    def __init__(self, n=1000):
        self.n = n
        self.betas = torch.linspace(1e-4, 0.02, n)
        self.alphas_cumprod = torch.cumprod(1 - self.betas, 0)

    def add_noise(self, x, noise, t):
        a = self.alphas_cumprod.to(x.device)[t].view(-1, 1, 1, 1)
        return a.sqrt() * x + (1 - a).sqrt() * noise


@torch.no_grad()
def generate(model, scheduler, batch, device, steps):
    x = torch.randn(batch, 3, config.image_size, config.image_size, device=device)
    ts = torch.linspace(scheduler.n - 1, 0, steps).long()
    for i, t in enumerate(ts):
        eps = model(x, t.to(device).expand(batch))
        a = scheduler.alphas_cumprod[t]
        prev = scheduler.alphas_cumprod[ts[i + 1]] if i + 1 < steps else torch.tensor(1.0)
        x0 = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-1, 1)
        x = prev.sqrt() * x0 + (1 - prev).sqrt() * eps
    return (x / 2 + 0.5).clamp(0, 1).cpu()


def train_loop(config, model, noise_scheduler, optimizer, train_dataloader, lr_scheduler, output_dir):
    accelerator = Accelerator(mixed_precision=config.mixed_precision,
                              gradient_accumulation_steps=config.gradient_accumulation_steps)
    model, optimizer, train_dataloader, lr_scheduler = accelerator.prepare(
        model, optimizer, train_dataloader, lr_scheduler)
    global_step = 0
    for epoch in range(config.num_epochs):
        progress_bar = tqdm(total=len(train_dataloader), disable=not accelerator.is_local_main_process)
        progress_bar.set_description(f"Epoch {epoch}")
        model.train()
        for step, batch in enumerate(train_dataloader):
            clean_images = batch["images"]
            noise = torch.randn(clean_images.shape, device=clean_images.device)
            bs = clean_images.shape[0]
            timesteps = torch.randint(0, noise_scheduler.n, (bs,), device=clean_images.device, dtype=torch.int64)
            noisy_images = noise_scheduler.add_noise(clean_images, noise, timesteps)
            with accelerator.accumulate(model):
                noise_pred = model(noisy_images, timesteps)
                loss = F.mse_loss(noise_pred, noise)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()
            progress_bar.update(1)
            logs = {"loss": loss.detach().item(), "lr": lr_scheduler.get_last_lr()[0], "step": global_step}
            progress_bar.set_postfix(**logs)
            global_step += 1

        if accelerator.is_main_process and (epoch + 1) % config.save_image_epochs == 0:
            net = accelerator.unwrap_model(model)
            net.eval()
            images = generate(net, noise_scheduler, config.eval_batch_size, accelerator.device,
                              config.num_inference_steps)
            transforms.ToPILImage()(images[0]).save(os.path.join(output_dir, f"{epoch:04d}.png"))
            torch.save(net.state_dict(), os.path.join(output_dir, "unet.pt"))


def main():
    set_seed(config.seed)
    dataloader = DataLoader(Butterflies(config.n_images), batch_size=config.train_batch_size, shuffle=True)
    model = UNet2D(config.channels)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate)
    lr_scheduler = get_cosine_schedule_with_warmup(
        optimizer, num_warmup_steps=config.lr_warmup_steps, num_training_steps=len(dataloader) * config.num_epochs)
    with tempfile.TemporaryDirectory() as out:
        train_loop(config, model, DDPMScheduler(), optimizer, dataloader, lr_scheduler, out)
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
