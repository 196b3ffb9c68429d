"""StyleGAN2 at 128x128 with lazy R1 and path length regularisation, manual optimization in Lightning."""
import argparse
import copy
import math
import tempfile

import pytorch_lightning as pl
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.utils import save_image


class EqualLinear(nn.Module):
    def __init__(self, i, o, lr_mul=1.0, bias_init=0.0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(o, i) / lr_mul)
        self.bias = nn.Parameter(torch.full((o,), float(bias_init)))
        self.scale, self.lr_mul = lr_mul / math.sqrt(i), lr_mul

    def forward(self, x):
        return F.linear(x, self.weight * self.scale, self.bias * self.lr_mul)


class EqualConv2d(nn.Module):
    def __init__(self, i, o, k, stride=1, padding=0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(o, i, k, k))
        self.bias = nn.Parameter(torch.zeros(o))
        self.scale, self.stride, self.padding = 1 / math.sqrt(i * k * k), stride, padding

    def forward(self, x):
        return F.conv2d(x, self.weight * self.scale, self.bias, self.stride, self.padding)


class ModulatedConv2d(nn.Module):
    def __init__(self, i, o, k, style_dim, demodulate=True):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, o, i, k, k))
        self.modulation = EqualLinear(style_dim, i, bias_init=1)
        self.scale, self.k, self.demodulate = 1 / math.sqrt(i * k * k), k, demodulate

    def forward(self, x, style):
        b, c, h, w = x.shape
        s = self.modulation(style).view(b, 1, c, 1, 1)
        weight = self.scale * self.weight * s
        if self.demodulate:
            weight = weight * torch.rsqrt(weight.pow(2).sum([2, 3, 4], keepdim=True) + 1e-8)
        o = weight.shape[1]
        out = F.conv2d(x.reshape(1, b * c, h, w), weight.view(b * o, c, self.k, self.k), padding=self.k // 2, groups=b)
        return out.view(b, o, h, w)


class StyledConv(nn.Module):
    def __init__(self, i, o, style_dim, upsample=False):
        super().__init__()
        self.conv = ModulatedConv2d(i, o, 3, style_dim)
        self.noise = nn.Parameter(torch.zeros(1))
        self.bias = nn.Parameter(torch.zeros(1, o, 1, 1))
        self.upsample = upsample

    def forward(self, x, w):
        if self.upsample:
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        x = self.conv(x, w)
        x = x + self.noise * torch.randn(x.shape[0], 1, *x.shape[2:], device=x.device)
        return F.leaky_relu(x + self.bias, 0.2) * math.sqrt(2)


class ToRGB(nn.Module):
    def __init__(self, i, style_dim):
        super().__init__()
        self.conv = ModulatedConv2d(i, 3, 1, style_dim, demodulate=False)
        self.bias = nn.Parameter(torch.zeros(1, 3, 1, 1))

    def forward(self, x, w, skip=None):
        x = self.conv(x, w) + self.bias
        if skip is not None:
            x = x + F.interpolate(skip, scale_factor=2, mode="bilinear", align_corners=False)
        return x


class Generator(nn.Module):
    def __init__(self, size, style_dim, channels):
        super().__init__()
        mapping = []
        for _ in range(6):
            mapping += [EqualLinear(style_dim, style_dim, lr_mul=0.01), nn.LeakyReLU(0.2)]
        self.mapping = nn.Sequential(*mapping)
        self.const = nn.Parameter(torch.randn(1, channels[4], 4, 4))
        self.conv1, self.rgb1 = StyledConv(channels[4], channels[4], style_dim), ToRGB(channels[4], style_dim)
        self.convs, self.rgbs = nn.ModuleList(), nn.ModuleList()
        res, c = 4, channels[4]
        while res < size:
            res *= 2
            self.convs.append(StyledConv(c, channels[res], style_dim, upsample=True))
            self.convs.append(StyledConv(channels[res], channels[res], style_dim))
            self.rgbs.append(ToRGB(channels[res], style_dim))
            c = channels[res]
        self.n_latent = 2 + 3 * len(self.rgbs)

    def map(self, z):
        return self.mapping(z * torch.rsqrt(z.pow(2).mean(1, keepdim=True) + 1e-8))

    def forward(self, styles):
        """styles: B x n_latent x style_dim"""
        x = self.conv1(self.const.expand(styles.shape[0], -1, -1, -1), styles[:, 0])
        skip = self.rgb1(x, styles[:, 1])
        i = 2
        for c1, c2, rgb in zip(self.convs[::2], self.convs[1::2], self.rgbs):
            x = c2(c1(x, styles[:, i]), styles[:, i + 1])
            skip = rgb(x, styles[:, i + 2], skip)
            i += 3
        return skip


class ResBlock(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.conv1 = EqualConv2d(i, i, 3, padding=1)
        self.conv2 = EqualConv2d(i, o, 3, stride=2, padding=1)
        self.skip = EqualConv2d(i, o, 1)

    def forward(self, x):
        out = F.leaky_relu(self.conv2(F.leaky_relu(self.conv1(x), 0.2)), 0.2)
        return (out + self.skip(F.avg_pool2d(x, 2))) / math.sqrt(2)


class Discriminator(nn.Module):
    def __init__(self, size, channels):
        super().__init__()
        layers, res = [EqualConv2d(3, channels[size], 1), nn.LeakyReLU(0.2)], size
        while res > 4:
            layers.append(ResBlock(channels[res], channels[res // 2]))
            res //= 2
        self.convs = nn.Sequential(*layers)
        self.final_conv = EqualConv2d(channels[4] + 1, channels[4], 3, padding=1)
        self.final = nn.Sequential(EqualLinear(channels[4] * 16, channels[4]), nn.LeakyReLU(0.2), EqualLinear(channels[4], 1))

    def forward(self, x):
        x = self.convs(x)
        b, c, h, w = x.shape
        group = min(b, 4)
        std = x.view(group, -1, 1, c, h, w)
        std = torch.sqrt(std.var(0, unbiased=False) + 1e-8).mean([2, 3, 4], keepdim=True).squeeze(2)
        x = torch.cat([x, std.repeat(group, 1, h, w)], 1)
        x = F.leaky_relu(self.final_conv(x), 0.2)
        return self.final(x.flatten(1))


class StyleGAN2(pl.LightningModule):
    def __init__(self, size, style_dim, channel_base, lr=2e-3, r1=10.0, d_every=8, g_every=4):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        ch = {r: min(512, channel_base * 512 // r // 8) for r in [4, 8, 16, 32, 64, 128, 256]}
        self.G, self.D = Generator(size, style_dim, ch), Discriminator(size, ch)
        self.G_ema = copy.deepcopy(self.G).requires_grad_(False)
        self.register_buffer("mean_path_length", torch.zeros(()))

    def sample_styles(self, n, G=None):
        G = G or self.G
        w = G.map(torch.randn(n, self.hparams.style_dim, device=self.device))
        if torch.rand(()) < 0.9:
            w2 = G.map(torch.randn(n, self.hparams.style_dim, device=self.device))
            cut = int(torch.randint(1, G.n_latent, ()))
            return torch.cat([w[:, None].expand(-1, cut, -1), w2[:, None].expand(-1, G.n_latent - cut, -1)], 1)
        return w[:, None].expand(-1, G.n_latent, -1)

    def training_step(self, real, batch_idx):
        g_opt, d_opt = self.optimizers()
        b = real.shape[0]
        # discriminator
        self.toggle_optimizer(d_opt)
        fake = self.G(self.sample_styles(b)).detach()
        d_loss = F.softplus(-self.D(real)).mean() + F.softplus(self.D(fake)).mean()
        d_opt.zero_grad()
        self.manual_backward(d_loss)
        d_opt.step()
        if batch_idx % self.hparams.d_every == 0:
            real = real.detach().requires_grad_(True)
            pred = self.D(real)
            grad, = torch.autograd.grad(pred.sum(), real, create_graph=True)
            r1 = grad.pow(2).flatten(1).sum(1).mean()
            d_opt.zero_grad()
            self.manual_backward(self.hparams.r1 / 2 * r1 * self.hparams.d_every + 0 * pred[0, 0])
            d_opt.step()
            self.log("r1", r1)
        self.untoggle_optimizer(d_opt)
        # generator
        self.toggle_optimizer(g_opt)
        g_loss = F.softplus(-self.D(self.G(self.sample_styles(b)))).mean()
        g_opt.zero_grad()
        self.manual_backward(g_loss)
        g_opt.step()
        if batch_idx % self.hparams.g_every == 0:
            styles = self.sample_styles(max(1, b // 2))
            img = self.G(styles)
            noise = torch.randn_like(img) / math.sqrt(img.shape[2] * img.shape[3])
            grad, = torch.autograd.grad((img * noise).sum(), styles, create_graph=True)
            lengths = torch.sqrt(grad.pow(2).sum(2).mean(1))
            mean = self.mean_path_length + 0.01 * (lengths.mean().detach() - self.mean_path_length)
            path_loss = (lengths - mean).pow(2).mean()
            self.mean_path_length.copy_(mean)
            g_opt.zero_grad()
            self.manual_backward(2 * self.hparams.g_every * path_loss)
            g_opt.step()
            self.log("path", path_loss)
        self.untoggle_optimizer(g_opt)
        with torch.no_grad():
            for p, q in zip(self.G.parameters(), self.G_ema.parameters()):
                q.lerp_(p, 1 - 0.5 ** (32 / 10000))
        self.log_dict({"d_loss": d_loss, "g_loss": g_loss}, prog_bar=True)

    def on_train_epoch_end(self):
        with torch.no_grad():
            imgs = self.G_ema(self.sample_styles(16, self.G_ema))
        save_image(imgs, f"{self.trainer.default_root_dir}/sample_{self.current_epoch}.png", nrow=4, normalize=True)

    def configure_optimizers(self):
        gr, dr = self.hparams.g_every / (self.hparams.g_every + 1), self.hparams.d_every / (self.hparams.d_every + 1)
        return [torch.optim.Adam(self.G.parameters(), lr=self.hparams.lr * gr, betas=(0.0, 0.99 ** gr)),
                torch.optim.Adam(self.D.parameters(), lr=self.hparams.lr * dr, betas=(0.0, 0.99 ** dr))], []


class Faces(Dataset):
    def __init__(self, n, size):
        g = torch.Generator().manual_seed(0)
        self.low = torch.rand(n, 3, 8, 8, generator=g)
        self.size = size

    def __len__(self):
        return len(self.low)

    def __getitem__(self, i):
        x = F.interpolate(self.low[i:i + 1], size=self.size, mode="bicubic")[0] * 2 - 1
        return x.flip(-1) if torch.rand(()) < 0.5 else x


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--size", type=int, default=128)
    ap.add_argument("--style_dim", type=int, default=512)
    ap.add_argument("--channel_base", type=int, default=128)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--n", type=int, default=640)
    ap.add_argument("--epochs", type=int, default=2)
    a = ap.parse_args()
    pl.seed_everything(0)
    loader = DataLoader(Faces(a.n, a.size), batch_size=a.batch, shuffle=True, drop_last=True, num_workers=1, persistent_workers=True)
    trainer = pl.Trainer(max_epochs=a.epochs, accelerator="auto", devices=1, default_root_dir=tempfile.mkdtemp(), logger=False, log_every_n_steps=5)
    trainer.fit(StyleGAN2(a.size, a.style_dim, a.channel_base), loader)
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
