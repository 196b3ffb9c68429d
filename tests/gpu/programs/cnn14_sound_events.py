# SPDX-License-Identifier: Apache-2.0
"""Audio tagging: log-mel on the GPU from raw waves, SpecAugment, PANNs-like CNN14, multi-label BCE with mixup, fp16 GradScaler; mAP by sklearn over collected predictions."""
import argparse
import math
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import average_precision_score
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
SR = 32000


class Clips(Dataset):
    def __init__(self, n, seconds, classes, seed):
        self.n, self.samples, self.classes, self.seed = n, int(SR * seconds), classes, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng((self.seed, i))
        wave = rng.standard_normal(self.samples, dtype=np.float32) * 0.05
        target = np.zeros(self.classes, dtype=np.float32)
        target[rng.integers(0, self.classes, 3)] = 1
        return wave, target


class LogMel(nn.Module):
    def __init__(self, n_fft=1024, hop=320, mels=64, fmin=50, fmax=14000):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))
        hz = torch.linspace(0, SR / 2, n_fft // 2 + 1)
        to_mel = lambda f: 2595 * math.log10(1 + f / 700)
        edges = 700 * (10 ** (torch.linspace(to_mel(fmin), to_mel(fmax), mels + 2) / 2595) - 1)
        up = (hz[None] - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
        down = (edges[2:, None] - hz[None]) / (edges[2:] - edges[1:-1])[:, None]
        self.register_buffer("fb", torch.minimum(up, down).clamp(min=0))

    @torch.no_grad()
    def forward(self, wave):
        spec = torch.stft(wave, self.n_fft, self.hop, window=self.window, return_complex=True).abs().pow(2)
        mel = torch.matmul(self.fb, spec)
        return 10 * torch.log10(mel.clamp(min=1e-10)).transpose(1, 2).unsqueeze(1)


class SpecAugment(nn.Module):
    def __init__(self, time=64, freq=8, stripes=2):
        super().__init__()
        self.time, self.freq, self.stripes = time, freq, stripes

    def forward(self, x):
        if not self.training:
            return x
        x = x.clone()
        for b in range(x.shape[0]):
            for _ in range(self.stripes):
                t = np.random.randint(0, min(self.time, x.shape[2] // 2))
                t0 = np.random.randint(0, x.shape[2] - t)
                x[b, :, t0:t0 + t] = 0
                f = np.random.randint(0, self.freq)
                f0 = np.random.randint(0, x.shape[3] - f)
                x[b, :, :, f0:f0 + f] = 0
        return x


class ConvBlock(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(cout, cout, 3, padding=1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(cout), nn.BatchNorm2d(cout)

    def forward(self, x, pool):
        x = F.relu_(self.bn1(self.conv1(x)))
        x = F.relu_(self.bn2(self.conv2(x)))
        return F.avg_pool2d(x, pool) if pool > 1 else x


class Cnn14(nn.Module):
    def __init__(self, classes, base=64, depth=6):
        super().__init__()
        self.logmel, self.aug, self.bn0 = LogMel(), SpecAugment(), nn.BatchNorm2d(64)
        widths = [1] + [base * 2 ** i for i in range(depth)]
        self.blocks = nn.ModuleList(ConvBlock(a, b) for a, b in zip(widths, widths[1:]))
        self.fc1, self.head = nn.Linear(widths[-1], widths[-1]), nn.Linear(widths[-1], classes)

    def forward(self, wave, lam=None):
        with torch.autocast(device, enabled=False):
            x = self.logmel(wave.float())
        x = self.bn0(x.transpose(1, 3)).transpose(1, 3)
        x = self.aug(x)
        if lam is not None:
            x = lam * x + (1 - lam) * x.flip(0)
        for i, block in enumerate(self.blocks):
            x = F.dropout(block(x, 2 if i < len(self.blocks) - 1 else 1), 0.2, self.training)
        x = x.mean(3)
        x = x.amax(2) + x.mean(2)
        x = F.relu(self.fc1(F.dropout(x, 0.5, self.training)))
        return self.head(x)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--epochs", type=int, default=2)
    args = p.parse_args()
    torch.manual_seed(0)
    np.random.seed(0)
    seconds, classes = (1, 6) if SMALL else (10, 200)
    if SMALL:
        args.batch_size = min(args.batch_size, 4)
    w = 0 if SMALL else 8
    train = DataLoader(Clips(args.batch_size * (2 if SMALL else 8), seconds, classes, 0), args.batch_size, shuffle=True, num_workers=w, pin_memory=device == "cuda")
    val = DataLoader(Clips(args.batch_size * 4, seconds, classes, 1), args.batch_size, num_workers=w, pin_memory=device == "cuda")
    model = Cnn14(classes, 8 if SMALL else 64, 4 if SMALL else 6).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, amsgrad=True)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 5))
    scaler = torch.amp.GradScaler("cuda", enabled=device == "cuda")
    for epoch in range(args.epochs):
        model.train()
        for wave, target in train:
            wave, target = wave.to(device), target.to(device)
            lam = float(np.random.beta(1.0, 1.0))
            with torch.autocast(device, dtype=torch.float16, enabled=device == "cuda"):
                logits = model(wave, lam)
                mixed = lam * target + (1 - lam) * target.flip(0)
                loss = F.binary_cross_entropy_with_logits(logits, mixed)
            opt.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            scaler.step(opt)
            scaler.update()
            sched.step()
        model.eval()
        outputs, targets = [], []
        for wave, target in val:
            with torch.no_grad(), torch.autocast(device, dtype=torch.float16, enabled=device == "cuda"):
                outputs.append(torch.sigmoid(model(wave.to(device))).float().cpu().numpy())
            targets.append(target.numpy())
        outputs, targets = np.concatenate(outputs), np.concatenate(targets)
        present = targets.sum(0) > 0
        print(f"epoch {epoch + 1}: loss {loss.item():.4f} mAP {average_precision_score(targets[:, present], np.nan_to_num(outputs[:, present]), average='macro'):.4f}")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
