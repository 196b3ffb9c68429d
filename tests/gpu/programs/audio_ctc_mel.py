# SPDX-License-Identifier: Apache-2.0
"""Speech recognition: log-mel from torch.stft on the GPU, convolutions, a bidirectional GRU, CTC loss."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
torch.manual_seed(0)


class LogMel(nn.Module):
    def __init__(self, rate=16000, n_fft=512, hop=160, mels=80):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(400))
        top = 2595 * torch.log10(torch.tensor(1 + rate / 2 / 700))
        points = 700 * (10 ** (torch.linspace(0, top.item(), mels + 2) / 2595) - 1)
        freqs = torch.linspace(0, rate / 2, n_fft // 2 + 1)
        up = (freqs[None] - points[:-2, None]) / (points[1:-1] - points[:-2])[:, None]
        down = (points[2:, None] - freqs[None]) / (points[2:] - points[1:-1])[:, None]
        self.register_buffer("bank", torch.minimum(up, down).clamp(min=0))

    @torch.no_grad()
    def forward(self, wave):
        spectrum = torch.stft(wave, self.n_fft, self.hop, 400, self.window, return_complex=True)
        mel = self.bank @ spectrum.abs().pow(2)
        mel = mel.clamp(min=1e-10).log()
        mel = (mel - mel.mean((1, 2), keepdim=True)) / mel.std((1, 2), keepdim=True)
        for row in mel:  # SpecAugment: a band of frequencies and of time
            f, t = torch.randint(0, 60, (1,)).item(), torch.randint(0, mel.shape[2] - 30, (1,)).item()
            row[f:f + 15] = 0
            row[:, t:t + 25] = 0
        return mel


class Model(nn.Module):
    def __init__(self, mels=80, width=512, classes=32):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 32, (11, 11), (2, 2), (5, 5)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20), nn.Conv2d(32, 64, (11, 11), (1, 1), (5, 5)), nn.BatchNorm2d(64), nn.Hardtanh(0, 20))
        self.time = nn.Sequential(nn.Conv1d(64 * mels // 2, width, 5, padding=2), nn.GELU(), nn.Dropout(0.1))
        self.rnn = nn.GRU(width, width, 3, batch_first=True, bidirectional=True, dropout=0.1)
        self.norm, self.out = nn.LayerNorm(2 * width), nn.Linear(2 * width, classes)

    def forward(self, mel):
        x = self.conv(mel[:, None])
        x = self.time(x.flatten(1, 2)).transpose(1, 2)
        x, _ = self.rnn(x)
        return self.out(self.norm(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    seconds = 2 if SMALL else 12
    mel, model = LogMel().to(device), Model(width=64 if SMALL else 512).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    ctc = nn.CTCLoss(blank=0, zero_infinity=True)
    for step in range(5):
        wave = torch.randn(args.batch_size, 16000 * seconds)
        length = 4 * seconds
        targets = torch.randint(1, 32, (args.batch_size, length))
        logits = model(mel(wave.to(device)))
        log_probs = F.log_softmax(logits, -1).transpose(0, 1)
        loss = ctc(log_probs, targets.to(device), torch.full((args.batch_size,), log_probs.shape[0], dtype=torch.long), torch.full((args.batch_size,), length, dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        print(step, loss.item())


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
