"""Real-ESRGAN style x4 super resolution: RRDB generator, patch discriminator, EMA, fp16."""
import argparse
import copy
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import spectral_norm
from torch.utils.data import DataLoader, Dataset


class HRPatches(Dataset):
    def __init__(self, n, size):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        low = torch.rand(1, 3, self.size // 8, self.size // 8, generator=g)
        hr = F.interpolate(low, scale_factor=8, mode="bicubic").clamp(0, 1)[0]
        return (hr + 0.05 * torch.randn(hr.shape, generator=g)).clamp(0, 1)


class ResidualDenseBlock(nn.Module):
    def __init__(self, nf=64, gc=32):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(nf + i * gc, gc if i < 4 else nf, 3, padding=1) for i in range(5))
        self.lrelu = nn.LeakyReLU(0.2, inplace=True)

    def forward(self, x):
        feats = [x]
        for conv in self.convs[:-1]:
            feats.append(self.lrelu(conv(torch.cat(feats, 1))))
        return self.convs[-1](torch.cat(feats, 1)) * 0.2 + x


class RRDB(nn.Module):
    def __init__(self, nf):
        super().__init__()
        self.body = nn.Sequential(*[ResidualDenseBlock(nf) for _ in range(3)])

    def forward(self, x):
        return self.body(x) * 0.2 + x


class RRDBNet(nn.Module):
    def __init__(self, nf=64, blocks=12):
        super().__init__()
        self.first = nn.Conv2d(3, nf, 3, padding=1)
        self.body = nn.Sequential(*[RRDB(nf) for _ in range(blocks)])
        self.conv_body = nn.Conv2d(nf, nf, 3, padding=1)
        self.up1 = nn.Conv2d(nf, nf, 3, padding=1)
        self.up2 = nn.Conv2d(nf, nf, 3, padding=1)
        self.hr = nn.Conv2d(nf, nf, 3, padding=1)
        self.last = nn.Conv2d(nf, 3, 3, padding=1)

    def forward(self, x):
        feat = self.first(x)
        feat = feat + self.conv_body(self.body(feat))
        feat = F.leaky_relu(self.up1(F.interpolate(feat, scale_factor=2, mode="nearest")), 0.2)
        feat = F.leaky_relu(self.up2(F.interpolate(feat, scale_factor=2, mode="nearest")), 0.2)
        return self.last(F.leaky_relu(self.hr(feat), 0.2))


def discriminator(nf=64):
    layers, prev = [nn.Conv2d(3, nf, 3, padding=1), nn.LeakyReLU(0.2, True)], nf
    for mult in (2, 4, 8):
        layers += [spectral_norm(nn.Conv2d(prev, nf * mult, 4, stride=2, padding=1, bias=False)), nn.LeakyReLU(0.2, True)]
        prev = nf * mult
    return nn.Sequential(*layers, nn.Conv2d(prev, 1, 3, padding=1))


def degrade(hr):
    size = hr.shape[-1] // 4
    mode = random.choice(["bilinear", "bicubic", "area"])
    lr = F.interpolate(hr, size=(size, size), mode=mode)
    return (lr + random.uniform(0, 0.05) * torch.randn_like(lr)).clamp(0, 1)


@torch.no_grad()
def update_ema(ema, net, decay):
    src = dict(net.named_parameters())
    for name, p in ema.named_parameters():
        p.mul_(decay).add_(src[name], alpha=1 - decay)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=12)
    parser.add_argument("--gt-size", type=int, default=256)
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--iters", type=int, default=120)
    parser.add_argument("--val-freq", type=int, default=60)
    parser.add_argument("--val-size", type=int, default=640)
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    random.seed(0)
    torch.manual_seed(0)

    net_g = RRDBNet(blocks=args.blocks).to(device)
    net_d = discriminator().to(device)
    net_g_ema = copy.deepcopy(net_g).eval()
    for p in net_g_ema.parameters():
        p.requires_grad = False
    opt_g = torch.optim.Adam(net_g.parameters(), lr=1e-4, betas=(0.9, 0.99))
    opt_d = torch.optim.Adam(net_d.parameters(), lr=1e-4, betas=(0.9, 0.99))
    scaler_g, scaler_d = torch.amp.GradScaler("cuda"), torch.amp.GradScaler("cuda")
    loader = DataLoader(HRPatches(args.iters * args.batch_size, args.gt_size), args.batch_size, num_workers=4, drop_last=True)
    val = DataLoader(HRPatches(4, args.val_size), 1)

    for it, hr in enumerate(loader, 1):
        hr = hr.to(device)
        lr = degrade(hr)
        for p in net_d.parameters():
            p.requires_grad = False
        opt_g.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            sr = net_g(lr)
            l_pix = F.l1_loss(sr, hr)
            fake = net_d(sr)
            l_gan = F.binary_cross_entropy_with_logits(fake, torch.ones_like(fake))
            l_g = l_pix + 0.1 * l_gan
        scaler_g.scale(l_g).backward()
        scaler_g.unscale_(opt_g)
        nn.utils.clip_grad_norm_(net_g.parameters(), 0.5)
        scaler_g.step(opt_g)
        scaler_g.update()

        for p in net_d.parameters():
            p.requires_grad = True
        opt_d.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            real = net_d(hr)
            l_real = F.binary_cross_entropy_with_logits(real, torch.ones_like(real))
        scaler_d.scale(l_real).backward()
        with torch.autocast("cuda", dtype=torch.float16):
            fake = net_d(sr.detach())
            l_fake = F.binary_cross_entropy_with_logits(fake, torch.zeros_like(fake))
        scaler_d.scale(l_fake).backward()
        scaler_d.step(opt_d)
        scaler_d.update()
        update_ema(net_g_ema, net_g, 0.999)

        if it % 20 == 0:
            print(f"iter {it} pix {l_pix.item():.4f} gan {l_gan.item():.4f} d {l_real.item() + l_fake.item():.4f}")
        if it % args.val_freq == 0:
            psnr = 0.0
            with torch.no_grad():
                for img in val:
                    img = img.to(device)
                    out = net_g_ema(F.interpolate(img, scale_factor=0.25, mode="bicubic")).clamp(0, 1)
                    psnr += -10 * torch.log10(F.mse_loss(out, img)).item()
            print(f"iter {it} val PSNR {psnr / len(val):.2f} dB")

    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
