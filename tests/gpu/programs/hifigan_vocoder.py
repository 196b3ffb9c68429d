"""HiFi-GAN vocoder: mel spectrogram to waveform, multi-period and multi-scale discriminators. fp32."""
import argparse
import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm, weight_norm
from torch.utils.data import DataLoader, Dataset

SR, N_FFT, HOP, MELS = 22050, 1024, 256, 80


def mel_filters():
    to_mel = lambda f: 2595 * math.log10(1 + f / 700)
    pts = torch.linspace(to_mel(0), to_mel(8000), MELS + 2)
    hz = 700 * (10 ** (pts / 2595) - 1)
    freqs = torch.linspace(0, SR / 2, N_FFT // 2 + 1)
    up = (freqs[None] - hz[:-2, None]) / (hz[1:-1] - hz[:-2])[:, None]
    down = (hz[2:, None] - freqs[None]) / (hz[2:] - hz[1:-1])[:, None]
    return torch.minimum(up, down).clamp(min=0)


class Mel(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("fb", mel_filters())
        self.register_buffer("window", torch.hann_window(N_FFT))

    def forward(self, wav):
        pad = (N_FFT - HOP) // 2
        wav = F.pad(wav[:, None], (pad, pad), mode="reflect").squeeze(1)
        spec = torch.stft(wav, N_FFT, HOP, N_FFT, self.window, center=False, return_complex=True)
        return torch.log((self.fb @ (spec.abs().pow(2) + 1e-9).sqrt()).clamp(min=1e-5))


class Voices(Dataset):
    """Harmonic tones with gliding pitch and noise bursts."""

    def __init__(self, n, seconds, segment, seed):
        g = torch.Generator().manual_seed(seed)
        t = torch.arange(int(SR * seconds)) / SR
        self.clips = []
        for _ in range(n):
            f0 = 90 + 200 * torch.rand(1, generator=g) + 30 * torch.sin(2 * math.pi * 3 * torch.rand(1, generator=g) * t)
            phase = 2 * math.pi * f0.cumsum(0) / SR
            wav = sum(torch.sin(k * phase) / k for k in range(1, 7))
            self.clips.append(0.3 * wav / wav.abs().max() + 0.01 * torch.randn(len(t), generator=g))
        self.segment = segment

    def __len__(self):
        return len(self.clips) * 16 if self.segment else len(self.clips)

    def __getitem__(self, i):
        if not self.segment:
            return self.clips[i]
        clip = self.clips[i % len(self.clips)]
        start = int(torch.randint(0, len(clip) - self.segment, (1,)))
        return clip[start:start + self.segment]


class ResBlock(nn.Module):
    def __init__(self, ch, k, dilations=(1, 3, 5)):
        super().__init__()
        self.a = nn.ModuleList([weight_norm(nn.Conv1d(ch, ch, k, dilation=d, padding=d * (k - 1) // 2)) for d in dilations])
        self.b = nn.ModuleList([weight_norm(nn.Conv1d(ch, ch, k, padding=(k - 1) // 2)) for _ in dilations])

    def forward(self, x):
        for a, b in zip(self.a, self.b):
            x = x + b(F.leaky_relu(a(F.leaky_relu(x, 0.1)), 0.1))
        return x


class Generator(nn.Module):
    def __init__(self, ch=512, rates=(8, 8, 2, 2), kernels=(16, 16, 4, 4), res=(3, 7, 11)):
        super().__init__()
        self.pre = weight_norm(nn.Conv1d(MELS, ch, 7, padding=3))
        self.ups, self.res = nn.ModuleList(), nn.ModuleList()
        for r, k in zip(rates, kernels):
            self.ups.append(weight_norm(nn.ConvTranspose1d(ch, ch // 2, k, r, padding=(k - r) // 2)))
            ch //= 2
            self.res.append(nn.ModuleList([ResBlock(ch, q) for q in res]))
        self.post = weight_norm(nn.Conv1d(ch, 1, 7, padding=3))

    def forward(self, mel):
        x = self.pre(mel)
        for up, blocks in zip(self.ups, self.res):
            x = up(F.leaky_relu(x, 0.1))
            x = sum(b(x) for b in blocks) / len(blocks)
        return torch.tanh(self.post(F.leaky_relu(x))).squeeze(1)


class PeriodD(nn.Module):
    def __init__(self, period):
        super().__init__()
        self.period = period
        chs = [1, 32, 128, 512, 1024, 1024]
        self.convs = nn.ModuleList([weight_norm(nn.Conv2d(i, o, (5, 1), (3 if n < 4 else 1, 1), (2, 0)))
                                    for n, (i, o) in enumerate(zip(chs, chs[1:]))])
        self.post = weight_norm(nn.Conv2d(1024, 1, (3, 1), 1, (1, 0)))

    def forward(self, x):
        x = F.pad(x[:, None], (0, -x.shape[1] % self.period), mode="reflect")
        x = x.view(len(x), 1, -1, self.period)
        feats = []
        for c in self.convs:
            x = F.leaky_relu(c(x), 0.1)
            feats.append(x)
        return self.post(x).flatten(1), feats


class ScaleD(nn.Module):
    def __init__(self, pool, norm):
        super().__init__()
        self.pool = nn.AvgPool1d(4, 2, 2) if pool else nn.Identity()
        spec = [(1, 128, 15, 1, 1), (128, 128, 41, 2, 4), (128, 256, 41, 2, 16), (256, 512, 41, 4, 16),
                (512, 1024, 41, 4, 16), (1024, 1024, 5, 1, 1)]
        self.convs = nn.ModuleList([norm(nn.Conv1d(i, o, k, s, k // 2, groups=g)) for i, o, k, s, g in spec])
        self.post = norm(nn.Conv1d(1024, 1, 3, 1, 1))

    def forward(self, x):
        x = self.pool(x[:, None])
        feats = []
        for c in self.convs:
            x = F.leaky_relu(c(x), 0.1)
            feats.append(x)
        return self.post(x).flatten(1), feats


class Discriminators(nn.Module):
    def __init__(self):
        super().__init__()
        self.nets = nn.ModuleList([PeriodD(p) for p in (2, 3, 5, 7, 11)] + [ScaleD(False, spectral_norm), ScaleD(True, weight_norm)])

    def forward(self, x):
        return [net(x) for net in self.nets]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=16)
    ap.add_argument("--segment", type=int, default=8192)
    ap.add_argument("--clips", type=int, default=64)
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--channels", type=int, default=512)
    args = ap.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(1234)
    loader = DataLoader(Voices(args.clips, 2.0, args.segment, 1), args.batch_size, shuffle=True, num_workers=2, drop_last=True)
    val_loader = DataLoader(Voices(6, 2.0, 0, 2), 1)
    gen, disc, mel = Generator(args.channels).to(device), Discriminators().to(device), Mel().to(device)
    opt_g = torch.optim.AdamW(gen.parameters(), 2e-4, betas=(0.8, 0.99))
    opt_d = torch.optim.AdamW(disc.parameters(), 2e-4, betas=(0.8, 0.99))
    scheds = [torch.optim.lr_scheduler.ExponentialLR(o, 0.999) for o in (opt_g, opt_d)]
    steps = itertools.count()
    for epoch in range(args.epochs):
        gen.train()
        disc.train()
        for wav in loader:
            wav = wav.to(device)
            m = mel(wav)
            fake = gen(m)
            opt_d.zero_grad()
            real_out, fake_out = disc(wav), disc(fake.detach())
            loss_d = sum(((1 - r) ** 2).mean() + (f ** 2).mean() for (r, _), (f, _) in zip(real_out, fake_out))
            loss_d.backward()
            opt_d.step()

            opt_g.zero_grad()
            loss_mel = F.l1_loss(mel(fake), m)
            real_out, fake_out = disc(wav), disc(fake)
            loss_fm = sum(F.l1_loss(b, a.detach()) for (_, fa), (_, fb) in zip(real_out, fake_out) for a, b in zip(fa, fb))
            loss_adv = sum(((1 - f) ** 2).mean() for f, _ in fake_out)
            loss_g = loss_adv + 2 * loss_fm + 45 * loss_mel
            loss_g.backward()
            opt_g.step()
            n = next(steps)
            if n % 20 == 0:
                print(f"{n}: d {loss_d.item():.3f} g {loss_g.item():.3f} mel {loss_mel.item():.3f}", flush=True)
        for s in scheds:
            s.step()
        gen.eval()
        with torch.no_grad():
            err = 0.0
            for wav in val_loader:
                m = mel(wav.to(device))
                err += F.l1_loss(mel(gen(m)), m).item()
        print(f"epoch {epoch}: validation mel error {err / len(val_loader):.4f}")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
