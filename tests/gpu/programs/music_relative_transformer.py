# SPDX-License-Identifier: Apache-2.0
"""Music Transformer from scratch: MIDI-event decoder with hand-written relative attention (skewing), Noam schedule, fp32; validation NLL and accuracy over chunks."""
import argparse
import math
import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
TOKEN_PAD, VOCAB = 388, 390


class Performances(Dataset):
    """Random walk over note-on/off, time-shift and velocity events."""

    def __init__(self, n, length, seed):
        g = torch.Generator().manual_seed(seed)
        step = torch.randint(-12, 13, (n, length + 1), generator=g)
        self.events = (step.cumsum(1) + 190).remainder(TOKEN_PAD)

    def __len__(self):
        return len(self.events)

    def __getitem__(self, i):
        e = self.events[i]
        return e[:-1], e[1:]


class RelativeSelfAttention(nn.Module):
    def __init__(self, d, heads, max_len, dropout):
        super().__init__()
        self.heads, self.dh, self.max_len = heads, d // heads, max_len
        self.query, self.key, self.value = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.proj = nn.Linear(d, d)
        self.Er = nn.Parameter(torch.randn(heads, max_len, self.dh) * 0.02)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(max_len, max_len, dtype=torch.bool), 1), persistent=False)

    def forward(self, x):
        b, t, d = x.shape
        q = self.query(x).view(b, t, self.heads, self.dh).permute(0, 2, 1, 3)
        k = self.key(x).view(b, t, self.heads, self.dh).permute(0, 2, 3, 1)
        v = self.value(x).view(b, t, self.heads, self.dh).permute(0, 2, 1, 3)
        rel = torch.matmul(q, self.Er[:, self.max_len - t:].transpose(1, 2))
        rel = nn.functional.pad(rel, (1, 0)).reshape(b, self.heads, t + 1, t)[:, :, 1:]
        scores = (torch.matmul(q, k) + rel) / math.sqrt(self.dh)
        scores = scores.masked_fill(self.mask[:t, :t], float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.proj(torch.matmul(weights, v).transpose(1, 2).reshape(b, t, d))


class DecoderLayer(nn.Module):
    def __init__(self, d, heads, ff, max_len, dropout):
        super().__init__()
        self.attn = RelativeSelfAttention(d, heads, max_len, dropout)
        self.ffn = nn.Sequential(nn.Linear(d, ff), nn.ReLU(), nn.Dropout(dropout), nn.Linear(ff, d))
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.drop1, self.drop2 = nn.Dropout(dropout), nn.Dropout(dropout)

    def forward(self, x):
        x = self.norm1(x + self.drop1(self.attn(x)))
        return self.norm2(x + self.drop2(self.ffn(x)))


class MusicTransformer(nn.Module):
    def __init__(self, d=512, heads=8, layers=6, ff=1024, max_len=1024, dropout=0.1):
        super().__init__()
        self.d = d
        self.embedding = nn.Embedding(VOCAB, d, padding_idx=TOKEN_PAD)
        self.layers = nn.ModuleList([DecoderLayer(d, heads, ff, max_len, dropout) for _ in range(layers)])
        self.out = nn.Linear(d, VOCAB)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)

    def forward(self, x):
        x = self.embedding(x) * math.sqrt(self.d)
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


class NoamOpt:
    def __init__(self, d, warmup, optimizer):
        self.d, self.warmup, self.optimizer, self._step = d, warmup, optimizer, 0

    def step(self):
        self._step += 1
        rate = self.d ** -0.5 * min(self._step ** -0.5, self._step * self.warmup ** -1.5)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()


def train_epoch(model, loader, criterion, opt, device):
    model.train()
    for x, y in loader:
        opt.optimizer.zero_grad()
        x, y = x.to(device), y.to(device)
        out = model(x)
        loss = criterion(out.view(-1, VOCAB), y.reshape(-1))
        loss.backward()
        opt.step()
    return loss.item()


def eval_model(model, loader, criterion, device):
    model.eval()
    loss_sum, acc_sum = 0.0, 0.0
    with torch.set_grad_enabled(False):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            out = model(x)
            loss_sum += float(criterion(out.view(-1, VOCAB), y.reshape(-1)))
            pred = torch.argmax(torch.softmax(out, dim=-1), dim=-1)
            acc_sum += float((pred == y)[y != TOKEN_PAD].float().mean())
    return loss_sum / len(loader), acc_sum / len(loader)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=8)
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--warmup", type=int, default=4000)
    args = ap.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    if SMALL:
        args.batch_size = min(args.batch_size, 2)
    length = 32 if SMALL else 1024
    model = (MusicTransformer(32, 4, 2, 64, length) if SMALL else MusicTransformer(max_len=length)).to(device)
    train_loader = DataLoader(Performances(args.batch_size * (2 if SMALL else 10), length, 0), batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(Performances(args.batch_size * 3, length, 1), batch_size=args.batch_size)
    train_criterion = nn.CrossEntropyLoss(ignore_index=TOKEN_PAD, label_smoothing=0.1)
    eval_criterion = nn.CrossEntropyLoss(ignore_index=TOKEN_PAD)
    opt = NoamOpt(model.d, args.warmup, torch.optim.Adam(model.parameters(), lr=0, betas=(0.9, 0.98), eps=1e-9))
    for epoch in range(args.epochs):
        last = train_epoch(model, train_loader, train_criterion, opt, device)
        vloss, vacc = eval_model(model, val_loader, eval_criterion, device)
        print("Epoch", epoch + 1, "train", round(last, 4), "eval loss", round(vloss, 4), "eval acc", round(vacc, 4))


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
