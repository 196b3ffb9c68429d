#!/usr/bin/env python3
"""Speaker embedding training: ECAPA-TDNN with AAM-softmax.

Waveforms go to the GPU and log-mel features are computed there.
"""
import argparse
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SR = 16000


def mel_filterbank(n_fft=512, n_mels=80, fmin=20.0, fmax=7600.0):
    def to_mel(f):
        return 2595.0 * np.log10(1.0 + f / 700.0)

    def to_hz(m):
        return 700.0 * (10 ** (m / 2595.0) - 1.0)

    pts = to_hz(np.linspace(to_mel(fmin), to_mel(fmax), n_mels + 2))
    bins = np.linspace(0, SR / 2, n_fft // 2 + 1)
    fb = np.zeros((n_mels, len(bins)), dtype=np.float32)
    for i in range(n_mels):
        lo, mid, hi = pts[i:i + 3]
        fb[i] = np.maximum(0, np.minimum((bins - lo) / (mid - lo), (hi - bins) / (hi - mid)))
    return torch.from_numpy(fb)


class LogMel(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hamming_window(400))
        self.register_buffer("fb", mel_filterbank())

    @torch.no_grad()
    def forward(self, wav):
        spec = torch.stft(wav, 512, hop_length=160, win_length=400, window=self.window,
                          center=True, return_complex=True)
        power = spec.abs() ** 2
        mel = torch.matmul(self.fb, power) + 1e-6
        mel = mel.log()
        return mel - mel.mean(dim=-1, keepdim=True)


class SEModule(nn.Module):
    def __init__(self, channels, bottleneck=128):
        super().__init__()
        self.se = nn.Sequential(
            nn.AdaptiveAvgPool1d(1),
            nn.Conv1d(channels, bottleneck, 1),
            nn.ReLU(),
            nn.Conv1d(bottleneck, channels, 1),
            nn.Sigmoid(),
        )

    def forward(self, x):
        return x * self.se(x)


class Bottle2neck(nn.Module):
    def __init__(self, planes, kernel_size=3, dilation=2, scale=8):
        super().__init__()
        width = planes // scale
        self.width = width
        self.nums = scale - 1
        self.conv1 = nn.Conv1d(planes, width * scale, 1)
        self.bn1 = nn.BatchNorm1d(width * scale)
        pad = dilation * (kernel_size // 2)
        self.convs = nn.ModuleList(
            nn.Conv1d(width, width, kernel_size, dilation=dilation, padding=pad) for _ in range(self.nums))
        self.bns = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(self.nums))
        self.conv3 = nn.Conv1d(width * scale, planes, 1)
        self.bn3 = nn.BatchNorm1d(planes)
        self.relu = nn.ReLU()
        self.se = SEModule(planes)

    def forward(self, x):
        residual = x
        out = self.bn1(self.relu(self.conv1(x)))
        spx = torch.split(out, self.width, 1)
        outs = []
        sp = None
        for i in range(self.nums):
            sp = spx[i] if i == 0 else sp + spx[i]
            sp = self.bns[i](self.relu(self.convs[i](sp)))
            outs.append(sp)
        outs.append(spx[self.nums])
        out = torch.cat(outs, 1)
        out = self.bn3(self.relu(self.conv3(out)))
        return self.se(out) + residual


class ECAPA(nn.Module):
    def __init__(self, C=1024, emb=192):
        super().__init__()
        self.mel = LogMel()
        self.conv1 = nn.Conv1d(80, C, 5, padding=2)
        self.relu = nn.ReLU()
        self.bn1 = nn.BatchNorm1d(C)
        self.layer1 = Bottle2neck(C, dilation=2)
        self.layer2 = Bottle2neck(C, dilation=3)
        self.layer3 = Bottle2neck(C, dilation=4)
        self.layer4 = nn.Conv1d(3 * C, 1536, 1)
        self.attention = nn.Sequential(
            nn.Conv1d(4608, 256, 1), nn.ReLU(), nn.BatchNorm1d(256), nn.Tanh(),
            nn.Conv1d(256, 1536, 1), nn.Softmax(dim=2))
        self.bn5 = nn.BatchNorm1d(3072)
        self.fc6 = nn.Linear(3072, emb)
        self.bn6 = nn.BatchNorm1d(emb)

    def forward(self, wav):
        x = self.mel(wav)
        x = self.bn1(self.relu(self.conv1(x)))
        x1 = self.layer1(x)
        x2 = self.layer2(x + x1)
        x3 = self.layer3(x + x1 + x2)
        x = self.relu(self.layer4(torch.cat((x1, x2, x3), dim=1)))
        t = x.size(-1)
        global_x = torch.cat((x, x.mean(2, keepdim=True).repeat(1, 1, t),
                              torch.sqrt(x.var(2, keepdim=True).clamp(min=1e-4)).repeat(1, 1, t)), dim=1)
        w = self.attention(global_x)
        mu = torch.sum(x * w, dim=2)
        sg = torch.sqrt((torch.sum((x ** 2) * w, dim=2) - mu ** 2).clamp(min=1e-4))
        return self.bn6(self.fc6(self.bn5(torch.cat((mu, sg), 1))))


class AAMSoftmax(nn.Module):
    def __init__(self, n_class, emb=192, m=0.2, s=30):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_class, emb))
        nn.init.xavier_normal_(self.weight)
        self.s = s
        self.cos_m, self.sin_m = math.cos(m), math.sin(m)
        self.th, self.mm = math.cos(math.pi - m), math.sin(math.pi - m) * m

    def forward(self, x, label):
        cosine = F.linear(F.normalize(x), F.normalize(self.weight))
        sine = torch.sqrt((1.0 - cosine ** 2).clamp(0, 1))
        phi = cosine * self.cos_m - sine * self.sin_m
        phi = torch.where(cosine - self.th > 0, phi, cosine - self.mm)
        one_hot = torch.zeros_like(cosine)
        one_hot.scatter_(1, label.view(-1, 1), 1)
        return F.cross_entropy((one_hot * phi + (1.0 - one_hot) * cosine) * self.s, label)


class Utterances(Dataset):
    def __init__(self, n, speakers, seconds):
        self.n, self.speakers, self.len = n, speakers, int(seconds * SR)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.randn(self.len, generator=g) * 0.1, i % self.speakers


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=96)
    ap.add_argument("--speakers", type=int, default=5994)
    ap.add_argument("--utterances", type=int, default=9600)
    ap.add_argument("--seconds", type=float, default=3.0)
    ap.add_argument("--channels", type=int, default=1024)
    ap.add_argument("--epochs", type=int, default=2)
    args = ap.parse_args()

    net = ECAPA(args.channels).cuda()
    head = AAMSoftmax(args.speakers).cuda()
    optim = torch.optim.Adam(list(net.parameters()) + list(head.parameters()), lr=1e-3, weight_decay=2e-5)
    sched = torch.optim.lr_scheduler.StepLR(optim, 1, gamma=0.97)
    loader = DataLoader(Utterances(args.utterances, args.speakers, args.seconds), batch_size=args.batch_size,
                        shuffle=True, num_workers=4, drop_last=True)
    trials = DataLoader(Utterances(200, 40, 8.0), batch_size=1, num_workers=2)
    for epoch in range(args.epochs):
        net.train()
        for step, (wav, spk) in enumerate(loader, 1):
            net.zero_grad()
            head.zero_grad()
            loss = head(net(wav.cuda()), spk.cuda())
            loss.backward()
            optim.step()
            if step % 20 == 0:
                print("epoch %d %d/%d loss %.4f" % (epoch, step, len(loader), loss.item()), flush=True)
        sched.step()
        net.eval()
        embs = []
        for wav, _ in trials:
            with torch.no_grad():
                embs.append(F.normalize(net(wav.cuda())).cpu())
        scores = torch.cat(embs) @ torch.cat(embs).T
        print("mean score %.4f" % scores.mean().item())


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
