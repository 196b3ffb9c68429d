"""StyleGAN2 at 128 x 128: modulated convs, lazy R1 and path-length regularisation, EMA generator (after rosinality)."""
import argparse
import math
import os
import random
import tempfile

import torch
from torch import autograd, nn, optim
from torch.nn import functional as F
from torch.utils import data
from torchvision import utils

parser = argparse.ArgumentParser()
parser.add_argument("--iter", type=int, default=80)
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--n_sample", type=int, default=32)
parser.add_argument("--size", type=int, default=128)
parser.add_argument("--r1", type=float, default=10)
parser.add_argument("--path_regularize", type=float, default=2)
parser.add_argument("--path_batch_shrink", type=int, default=2)
parser.add_argument("--d_reg_every", type=int, default=16)
parser.add_argument("--g_reg_every", type=int, default=4)
parser.add_argument("--mixing", type=float, default=0.9)
parser.add_argument("--lr", type=float, default=0.002)
parser.add_argument("--latent", type=int, default=512)
parser.add_argument("--n_mlp", type=int, default=8)
parser.add_argument("--images", type=int, default=512)
parser.add_argument("--save_every", type=int, default=40)


class EqualLinear(nn.Module):
    def __init__(self, i, o, bias_init=0, lr_mul=1, activation=False):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(o, i).div_(lr_mul))
        self.bias = nn.Parameter(torch.zeros(o).fill_(bias_init))
        self.scale, self.lr_mul, self.activation = (1 / math.sqrt(i)) * lr_mul, lr_mul, activation

    def forward(self, x):
        out = F.linear(x, self.weight * self.scale, self.bias * self.lr_mul)
        return F.leaky_relu(out, 0.2) * math.sqrt(2) if self.activation else out


class EqualConv2d(nn.Module):
    def __init__(self, i, o, k, stride=1, padding=0, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(o, i, k, k))
        self.scale, self.stride, self.padding = 1 / math.sqrt(i * k ** 2), stride, padding
        self.bias = nn.Parameter(torch.zeros(o)) if bias else None

    def forward(self, x):
        return F.conv2d(x, self.weight * self.scale, bias=self.bias, stride=self.stride, padding=self.padding)


class Blur(nn.Module):
    def __init__(self, factor=1):
        super().__init__()
        k = torch.tensor([1., 3., 3., 1.])
        k = k[None, :] * k[:, None]
        self.register_buffer("kernel", (k / k.sum() * factor ** 2)[None, None])

    def forward(self, x, pad):
        b, c, h, w = x.shape
        x = F.pad(x.reshape(b * c, 1, h, w), (pad[0], pad[1], pad[0], pad[1]))
        x = F.conv2d(x, self.kernel)
        return x.view(b, c, x.shape[2], x.shape[3])


class ModulatedConv2d(nn.Module):
    def __init__(self, i, o, k, style_dim, demodulate=True, upsample=False):
        super().__init__()
        self.i, self.o, self.k, self.demodulate, self.upsample = i, o, k, demodulate, upsample
        self.weight = nn.Parameter(torch.randn(1, o, i, k, k))
        self.scale = 1 / math.sqrt(i * k ** 2)
        self.modulation = EqualLinear(style_dim, i, bias_init=1)
        if upsample:
            self.blur = Blur(2)

    def forward(self, x, style):
        b, c, h, w = x.shape
        style = self.modulation(style).view(b, 1, c, 1, 1)
        weight = self.scale * self.weight * style
        if self.demodulate:
            demod = torch.rsqrt(weight.pow(2).sum([2, 3, 4]) + 1e-8)
            weight = weight * demod.view(b, self.o, 1, 1, 1)
        weight = weight.view(b * self.o, c, self.k, self.k)
        x = x.reshape(1, b * c, h, w)
        if self.upsample:
            weight = weight.view(b, self.o, c, self.k, self.k).transpose(1, 2).reshape(b * c, self.o, self.k, self.k)
            out = F.conv_transpose2d(x, weight, padding=0, stride=2, groups=b)
            out = out.view(b, self.o, out.shape[2], out.shape[3])
            return self.blur(out, (1, 1))
        out = F.conv2d(x, weight, padding=self.k // 2, groups=b)
        return out.view(b, self.o, out.shape[2], out.shape[3])


class StyledConv(nn.Module):
    def __init__(self, i, o, style_dim, upsample=False):
        super().__init__()
        self.conv = ModulatedConv2d(i, o, 3, style_dim, upsample=upsample)
        self.noise = nn.Parameter(torch.zeros(1))
        self.bias = nn.Parameter(torch.zeros(1, o, 1, 1))

    def forward(self, x, style):
        out = self.conv(x, style)
        noise = out.new_empty(out.shape[0], 1, out.shape[2], out.shape[3]).normal_()
        return F.leaky_relu(out + self.noise * noise + self.bias, 0.2) * math.sqrt(2)


class ToRGB(nn.Module):
    def __init__(self, i, style_dim, upsample=True):
        super().__init__()
        self.conv = ModulatedConv2d(i, 3, 1, style_dim, demodulate=False)
        self.bias = nn.Parameter(torch.zeros(1, 3, 1, 1))

    def forward(self, x, style, skip=None):
        out = self.conv(x, style) + self.bias
        if skip is not None:
            out = out + F.interpolate(skip, scale_factor=2, mode="bilinear", align_corners=False)
        return out


CHANNELS = {4: 512, 8: 512, 16: 512, 32: 512, 64: 256, 128: 128}


class Generator(nn.Module):
    def __init__(self, size, style_dim, n_mlp):
        super().__init__()
        self.style_dim = style_dim
        self.style = nn.Sequential(*[EqualLinear(style_dim, style_dim, lr_mul=0.01, activation=True) for _ in range(n_mlp)])
        self.input = nn.Parameter(torch.randn(1, CHANNELS[4], 4, 4))
        self.conv1 = StyledConv(CHANNELS[4], CHANNELS[4], style_dim)
        self.to_rgb1 = ToRGB(CHANNELS[4], style_dim)
        self.log_size = int(math.log(size, 2))
        self.convs, self.to_rgbs = nn.ModuleList(), nn.ModuleList()
        c = CHANNELS[4]
        for i in range(3, self.log_size + 1):
            o = CHANNELS[2 ** i]
            self.convs.append(StyledConv(c, o, style_dim, upsample=True))
            self.convs.append(StyledConv(o, o, style_dim))
            self.to_rgbs.append(ToRGB(o, style_dim))
            c = o
        self.n_latent = self.log_size * 2 - 2

    def forward(self, styles, return_latents=False):
        styles = [self.style(F.normalize(s, dim=1) * math.sqrt(s.shape[1])) for s in styles]
        if len(styles) < 2:
            latent = styles[0].unsqueeze(1).repeat(1, self.n_latent, 1)
        else:
            k = random.randint(1, self.n_latent - 1)
            latent = torch.cat([styles[0].unsqueeze(1).repeat(1, k, 1),
                                styles[1].unsqueeze(1).repeat(1, self.n_latent - k, 1)], 1)
        out = self.input.repeat(latent.shape[0], 1, 1, 1)
        out = self.conv1(out, latent[:, 0])
        skip = self.to_rgb1(out, latent[:, 1])
        i = 1
        for conv1, conv2, to_rgb in zip(self.convs[::2], self.convs[1::2], self.to_rgbs):
            out = conv1(out, latent[:, i])
            out = conv2(out, latent[:, i + 1])
            skip = to_rgb(out, latent[:, i + 2], skip)
            i += 2
        return (skip, latent) if return_latents else (skip, None)


class ResBlock(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.conv1 = EqualConv2d(i, i, 3, padding=1)
        self.conv2 = EqualConv2d(i, o, 3, stride=2)
        self.skip = EqualConv2d(i, o, 1, stride=2, bias=False)
        self.blur = Blur()

    def forward(self, x):
        out = F.leaky_relu(self.conv1(x), 0.2) * math.sqrt(2)
        out = F.leaky_relu(self.conv2(self.blur(out, (2, 2))), 0.2) * math.sqrt(2)
        return (out + self.skip(self.blur(x, (1, 1)))) / math.sqrt(2)


class Discriminator(nn.Module):
    def __init__(self, size):
        super().__init__()
        c = CHANNELS[size]
        layers = [EqualConv2d(3, c, 1), nn.LeakyReLU(0.2)]
        for i in range(int(math.log(size, 2)), 2, -1):
            o = CHANNELS[2 ** (i - 1)]
            layers.append(ResBlock(c, o))
            c = o
        self.convs = nn.Sequential(*layers)
        self.final_conv = EqualConv2d(c + 1, CHANNELS[4], 3, padding=1)
        self.final_linear = nn.Sequential(EqualLinear(CHANNELS[4] * 16, CHANNELS[4], activation=True), EqualLinear(CHANNELS[4], 1))

    def forward(self, x):
        out = self.convs(x)
        b, c, h, w = out.shape
        group = min(b, 4)
        stddev = out.view(group, -1, 1, c, h, w)
        stddev = torch.sqrt(stddev.var(0, unbiased=False) + 1e-8).mean([2, 3, 4], keepdim=True).squeeze(2)
        out = torch.cat([out, stddev.repeat(group, 1, h, w)], 1)
        out = F.leaky_relu(self.final_conv(out), 0.2)
        return self.final_linear(out.view(b, -1))


def requires_grad(model, flag=True):
    for p in model.parameters():
        p.requires_grad = flag


def accumulate(model1, model2, decay=0.999):
    par1, par2 = dict(model1.named_parameters()), dict(model2.named_parameters())
    for k in par1.keys():
        par1[k].data.mul_(decay).add_(par2[k].data, alpha=1 - decay)


def sample_data(loader):
    while True:
        for batch in loader:
            yield batch


def d_r1_loss(real_pred, real_img):
    grad_real, = autograd.grad(outputs=real_pred.sum(), inputs=real_img, create_graph=True)
    return grad_real.pow(2).reshape(grad_real.shape[0], -1).sum(1).mean()


def g_path_regularize(fake_img, latents, mean_path_length, decay=0.01):
    noise = torch.randn_like(fake_img) / math.sqrt(fake_img.shape[2] * fake_img.shape[3])
    grad, = autograd.grad(outputs=(fake_img * noise).sum(), inputs=latents, create_graph=True)
    path_lengths = torch.sqrt(grad.pow(2).sum(2).mean(1))
    path_mean = mean_path_length + decay * (path_lengths.mean() - mean_path_length)
    return (path_lengths - path_mean).pow(2).mean(), path_mean.detach(), path_lengths


def mixing_noise(batch, latent_dim, prob, device):
    if prob > 0 and random.random() < prob:
        return list(torch.randn(2, batch, latent_dim, device=device).unbind(0))
    return [torch.randn(batch, latent_dim, device=device)]


class Faces(data.Dataset):
    def __init__(self, n, size):
        g = torch.Generator().manual_seed(0)
        self.small = torch.rand(n, 3, 8, 8, generator=g) * 2 - 1
        self.size = size

    def __len__(self):
        return len(self.small)

    def __getitem__(self, i):
        x = F.interpolate(self.small[i][None], size=(self.size,) * 2, mode="bilinear")[0]
        return x.flip(-1) if random.random() < 0.5 else x


def main():
    args = parser.parse_args()
    device = "cuda"
    random.seed(0)
    torch.manual_seed(0)
    out_dir = tempfile.mkdtemp()
    generator = Generator(args.size, args.latent, args.n_mlp).to(device)
    discriminator = Discriminator(args.size).to(device)
    g_ema = Generator(args.size, args.latent, args.n_mlp).to(device)
    g_ema.eval()
    accumulate(g_ema, generator, 0)
    g_reg_ratio = args.g_reg_every / (args.g_reg_every + 1)
    d_reg_ratio = args.d_reg_every / (args.d_reg_every + 1)
    g_optim = optim.Adam(generator.parameters(), lr=args.lr * g_reg_ratio, betas=(0 ** g_reg_ratio, 0.99 ** g_reg_ratio))
    d_optim = optim.Adam(discriminator.parameters(), lr=args.lr * d_reg_ratio, betas=(0 ** d_reg_ratio, 0.99 ** d_reg_ratio))
    loader = sample_data(data.DataLoader(Faces(args.images, args.size), batch_size=args.batch, shuffle=True, drop_last=True))
    mean_path_length = 0
    sample_z = torch.randn(args.n_sample, args.latent, device=device)
    accum = 0.5 ** (32 / (10 * 1000))

    for i in range(args.iter):
        real_img = next(loader).to(device)
        requires_grad(generator, False)
        requires_grad(discriminator, True)
        noise = mixing_noise(args.batch, args.latent, args.mixing, device)
        fake_img, _ = generator(noise)
        fake_pred = discriminator(fake_img)
        real_pred = discriminator(real_img)
        d_loss = F.softplus(-real_pred).mean() + F.softplus(fake_pred).mean()
        discriminator.zero_grad()
        d_loss.backward()
        d_optim.step()

        if i % args.d_reg_every == 0:
            real_img.requires_grad = True
            real_pred = discriminator(real_img)
            r1_loss = d_r1_loss(real_pred, real_img)
            discriminator.zero_grad()
            (args.r1 / 2 * r1_loss * args.d_reg_every + 0 * real_pred[0]).backward()
            d_optim.step()

        requires_grad(generator, True)
        requires_grad(discriminator, False)
        noise = mixing_noise(args.batch, args.latent, args.mixing, device)
        fake_img, _ = generator(noise)
        g_loss = F.softplus(-discriminator(fake_img)).mean()
        generator.zero_grad()
        g_loss.backward()
        g_optim.step()

        if i % args.g_reg_every == 0:
            path_batch_size = max(1, args.batch // args.path_batch_shrink)
            noise = mixing_noise(path_batch_size, args.latent, args.mixing, device)
            fake_img, latents = generator(noise, return_latents=True)
            path_loss, mean_path_length, path_lengths = g_path_regularize(fake_img, latents, mean_path_length)
            generator.zero_grad()
            weighted_path_loss = args.path_regularize * args.g_reg_every * path_loss
            weighted_path_loss += 0 * fake_img[0, 0, 0, 0]
            weighted_path_loss.backward()
            g_optim.step()

        accumulate(g_ema, generator, accum)
        if i % 10 == 0:
            print(f"{i} d: {d_loss.item():.4f}; g: {g_loss.item():.4f}; r1: {r1_loss.item():.4f}; "
                  f"path: {path_loss.item():.4f}; mean path: {mean_path_length.item():.4f}")
        if (i + 1) % args.save_every == 0:
            with torch.no_grad():
                g_ema.eval()
                sample, _ = g_ema([sample_z])
                utils.save_image(sample, os.path.join(out_dir, f"{str(i).zfill(6)}.png"), nrow=8, normalize=True, value_range=(-1, 1))
            torch.save({"g": generator.state_dict(), "d": discriminator.state_dict(), "g_ema": g_ema.state_dict(),
                        "g_optim": g_optim.state_dict(), "d_optim": d_optim.state_dict()}, os.path.join(out_dir, "ckpt.pt"))


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
