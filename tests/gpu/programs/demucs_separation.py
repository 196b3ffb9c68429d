"""Demucs (waveform U-Net with a bidirectional LSTM) for four-source separation; accelerate fp16, remix augmentation,
EMA and overlapped inference over a longer track for validation."""
import argparse
import copy
import math
import os
import random
import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

SOURCES = ["drums", "bass", "other", "vocals"]


class BLSTM(nn.Module):
    def __init__(self, dim, layers=2):
        super().__init__()
        self.lstm = nn.LSTM(bidirectional=True, num_layers=layers, hidden_size=dim, input_size=dim)
        self.linear = nn.Linear(2 * dim, dim)

    def forward(self, x):
        x = x.permute(2, 0, 1)
        x = self.lstm(x)[0]
        x = self.linear(x)
        return x.permute(1, 2, 0)


def rescale_module(module, reference):
    for sub in module.modules():
        if isinstance(sub, (nn.Conv1d, nn.ConvTranspose1d)):
            std = sub.weight.std().detach()
            scale = (std / reference) ** 0.5
            sub.weight.data /= scale
            if sub.bias is not None:
                sub.bias.data /= scale


class Demucs(nn.Module):
    def __init__(self, audio_channels=2, channels=48, depth=6, kernel_size=8, stride=4, context=3, growth=2.0, rescale=0.1):
        super().__init__()
        self.audio_channels, self.depth, self.kernel_size, self.stride = audio_channels, depth, kernel_size, stride
        self.context = context
        self.encoder, self.decoder = nn.ModuleList(), nn.ModuleList()
        in_channels = audio_channels
        for index in range(depth):
            encode = [nn.Conv1d(in_channels, channels, kernel_size, stride), nn.ReLU(),
                      nn.Conv1d(channels, 2 * channels, 1), nn.GLU(dim=1)]
            self.encoder.append(nn.Sequential(*encode))
            out_channels = in_channels if index > 0 else len(SOURCES) * audio_channels
            decode = [nn.Conv1d(channels, 2 * channels, context), nn.GLU(dim=1),
                      nn.ConvTranspose1d(channels, out_channels, kernel_size, stride)]
            if index > 0:
                decode.append(nn.ReLU())
            self.decoder.insert(0, nn.Sequential(*decode))
            in_channels = channels
            channels = int(growth * channels)
        self.lstm = BLSTM(in_channels)
        rescale_module(self, rescale)

    def valid_length(self, length):
        for _ in range(self.depth):
            length = math.ceil((length - self.kernel_size) / self.stride) + 1
            length = max(1, length)
            length += self.context - 1
        for _ in range(self.depth):
            length = (length - 1) * self.stride + self.kernel_size
        return int(length)

    def forward(self, mix):
        x = mix
        length = x.shape[-1]
        delta = self.valid_length(length) - length
        x = F.pad(x, (delta // 2, delta - delta // 2))
        saved = []
        for encode in self.encoder:
            x = encode(x)
            saved.append(x)
        x = self.lstm(x)
        for decode in self.decoder:
            skip = saved.pop(-1)
            trim = skip.shape[-1] - x.shape[-1]
            skip = skip[..., trim // 2: skip.shape[-1] - (trim - trim // 2)]
            x = decode(x + skip)
        extra = x.shape[-1] - length
        if extra > 0:
            x = x[..., extra // 2: x.shape[-1] - (extra - extra // 2)]
        return x.view(x.size(0), len(SOURCES), self.audio_channels, length)


class Tracks(Dataset):
    def __init__(self, n, samples, seed, sr=44100):
        self.n, self.samples, self.seed, self.sr = n, samples, seed, sr

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed + i)
        t = torch.arange(self.samples) / self.sr
        f = torch.rand(4, 1, 1, generator=g) * torch.tensor([60., 120., 500., 900.]).view(4, 1, 1) + 50
        x = torch.sin(2 * math.pi * f * t) * 0.2
        x = x.repeat(1, 2, 1)
        x[0] += 0.1 * torch.randn(2, self.samples, generator=g) * (torch.sin(2 * math.pi * 2 * t) > 0.9)
        return x


class Augment(nn.Module):
    """Random shift, channel flip, sign and remix of sources inside the batch."""

    def __init__(self, shift):
        super().__init__()
        self.shift = shift

    def forward(self, wav):
        b, s, c, t = wav.shape
        length = t - self.shift
        off = torch.randint(self.shift, [b, s, 1, 1], device=wav.device).expand(-1, -1, c, -1)
        idx = torch.arange(length, device=wav.device)
        wav = wav.gather(3, idx + off)
        left = torch.randint(2, (b, s, 1, 1), device=wav.device).expand(-1, -1, -1, length)
        wav = torch.cat([wav.gather(2, left), wav.gather(2, 1 - left)], dim=2)
        wav = wav * (torch.randint(2, (b, s, 1, 1), device=wav.device) * 2 - 1)
        perm = torch.argsort(torch.rand(b, s, device=wav.device), dim=0)
        return wav.gather(0, perm.view(b, s, 1, 1).expand_as(wav))


@torch.no_grad()
def apply_model(model, mix, segment, overlap=0.25):
    length = mix.shape[-1]
    stride = int((1 - overlap) * segment)
    out = torch.zeros(mix.shape[0], len(SOURCES), mix.shape[1], length, device=mix.device)
    weight = torch.cat([torch.arange(1, segment // 2 + 1), torch.arange(segment - segment // 2, 0, -1)]).to(mix.device).float()
    weight = weight / weight.max()
    sum_weight = torch.zeros(length, device=mix.device)
    for offset in range(0, length, stride):
        chunk = mix[..., offset:offset + segment]
        y = model(chunk)
        n = y.shape[-1]
        out[..., offset:offset + n] += weight[:n] * y
        sum_weight[offset:offset + n] += weight[:n]
    return out / sum_weight


def main(a):
    set_seed(42)
    random.seed(42)
    accelerator = Accelerator(mixed_precision=a.precision)
    model = Demucs(channels=a.channels, depth=a.depth)
    ema = copy.deepcopy(model).to(accelerator.device).requires_grad_(False)
    opt = torch.optim.Adam(model.parameters(), lr=3e-4)
    train = DataLoader(Tracks(a.n, a.samples + a.shift, 0), batch_size=a.batch_size, shuffle=True, num_workers=2, drop_last=True)
    val = DataLoader(Tracks(2, a.samples * 3, 10 ** 6), batch_size=1)
    model, opt, train, val = accelerator.prepare(model, opt, train, val)
    augment = Augment(a.shift).to(accelerator.device)
    out = tempfile.mkdtemp()
    for epoch in range(a.epochs):
        model.train()
        total = 0.0
        for idx, sources in enumerate(train):
            sources = augment(sources)
            mix = sources.sum(dim=1)
            estimates = model(mix)
            loss = F.l1_loss(estimates, sources)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            opt.zero_grad()
            total += loss.item()
            with torch.no_grad():
                for pe, p in zip(ema.parameters(), accelerator.unwrap_model(model).parameters()):
                    pe.mul_(0.99).add_(p, alpha=0.01)
            if idx % 5 == 0:
                accelerator.print(f"epoch {epoch} {idx}/{len(train)} loss {loss.item():.4f}")
        ema.eval()
        sdr = 0.0
        for sources in val:
            est = apply_model(ema, sources.sum(1), a.samples)
            num = sources.pow(2).sum((2, 3)) + 1e-7
            den = (sources - est).pow(2).sum((2, 3)) + 1e-7
            sdr += (10 * torch.log10(num / den)).mean().item()
        accelerator.print(f"epoch {epoch} train {total / len(train):.4f} nsdr {sdr / len(val):.3f}")
        accelerator.save({"model": accelerator.get_state_dict(model), "ema": ema.state_dict()}, os.path.join(out, "best.th"))


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--batch_size", type=int, default=8)
    p.add_argument("--samples", type=int, default=44100 * 4)
    p.add_argument("--shift", type=int, default=22050)
    p.add_argument("--channels", type=int, default=48)
    p.add_argument("--depth", type=int, default=6)
    p.add_argument("--n", type=int, default=200)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--precision", default="fp16")
    main(p.parse_args())
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
