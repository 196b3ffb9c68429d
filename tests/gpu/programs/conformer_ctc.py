"""Conformer encoder with CTC on filterbank features of varied length. bf16 autocast, Noam schedule, greedy decoding each epoch."""
import argparse
import math
import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler

VOCAB = 64  # 0 is the blank


class Utterances(Dataset):
    def __init__(self, n, max_frames, seed):
        g = torch.Generator().manual_seed(seed)
        self.lengths = torch.randint(max_frames // 4, max_frames + 1, (n,), generator=g).tolist()
        self.tokens = [torch.randint(1, VOCAB, (max(2, t // 24),), generator=g) for t in self.lengths]
        self.prototypes = torch.randn(VOCAB, 80, generator=torch.Generator().manual_seed(5))

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        t, y = self.lengths[i], self.tokens[i]
        frames = self.prototypes[y].repeat_interleave(t // len(y), 0)
        return frames + 0.5 * torch.randn_like(frames), y


class BucketSampler(Sampler):
    """Batches of similar lengths, in random order."""

    def __init__(self, lengths, batch, shuffle=True):
        order = sorted(range(len(lengths)), key=lambda i: lengths[i])
        self.batches = [order[i:i + batch] for i in range(0, len(order), batch)]
        self.shuffle = shuffle

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        batches = list(self.batches)
        if self.shuffle:
            random.shuffle(batches)
        return iter(batches)


def collate(batch):
    feats, toks = zip(*batch)
    return (pad_sequence(feats, batch_first=True), torch.tensor([len(f) for f in feats]),
            torch.cat(toks), torch.tensor([len(t) for t in toks]))


class FeedForward(nn.Sequential):
    def __init__(self, d, p):
        super().__init__(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.SiLU(), nn.Dropout(p), nn.Linear(4 * d, d), nn.Dropout(p))


class Attention(nn.Module):
    def __init__(self, d, h, p):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(d), nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.h, self.p = h, p

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :], dropout_p=self.p if self.training else 0.0)
        return F.dropout(self.out(y.transpose(1, 2).reshape(b, t, d)), self.p, self.training)


class ConvModule(nn.Module):
    def __init__(self, d, kernel, p):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.up = nn.Conv1d(d, 2 * d, 1)
        self.depth = nn.Conv1d(d, d, kernel, padding=kernel // 2, groups=d)
        self.bn = nn.BatchNorm1d(d)
        self.down = nn.Conv1d(d, d, 1)
        self.p = p

    def forward(self, x, mask):
        y = self.norm(x).transpose(1, 2)
        y = F.glu(self.up(y), dim=1).masked_fill(~mask[:, None], 0)
        y = self.down(F.silu(self.bn(self.depth(y))))
        return F.dropout(y.transpose(1, 2), self.p, self.training)


class Block(nn.Module):
    def __init__(self, d, h, kernel, p):
        super().__init__()
        self.ff1, self.ff2 = FeedForward(d, p), FeedForward(d, p)
        self.att, self.conv, self.norm = Attention(d, h, p), ConvModule(d, kernel, p), nn.LayerNorm(d)

    def forward(self, x, mask):
        x = x + 0.5 * self.ff1(x)
        x = x + self.att(x, mask)
        x = x + self.conv(x, mask)
        return self.norm(x + 0.5 * self.ff2(x))


class Conformer(nn.Module):
    def __init__(self, d=320, layers=12, heads=4, kernel=31, p=0.1):
        super().__init__()
        self.sub = nn.Sequential(nn.Conv2d(1, d, 3, 2, 1), nn.ReLU(), nn.Conv2d(d, d, 3, 2, 1), nn.ReLU())
        self.proj = nn.Linear(d * 20, d)
        self.blocks = nn.ModuleList([Block(d, heads, kernel, p) for _ in range(layers)])
        self.head = nn.Linear(d, VOCAB)
        self.d = d

    def positions(self, t, device):
        pos = torch.arange(t, device=device)[:, None]
        div = torch.exp(torch.arange(0, self.d, 2, device=device) * (-math.log(10000.0) / self.d))
        return torch.cat([torch.sin(pos * div), torch.cos(pos * div)], 1)

    def forward(self, feats, lengths):
        x = self.sub(feats[:, None])
        x = self.proj(x.permute(0, 2, 1, 3).flatten(2))
        lengths = (lengths + 3) // 4
        x = x + self.positions(x.shape[1], x.device)
        mask = torch.arange(x.shape[1], device=x.device)[None] < lengths[:, None]
        for blk in self.blocks:
            x = blk(x, mask)
        return self.head(x), lengths


def spec_augment(x):
    for _ in range(2):
        f0, w = random.randrange(60), random.randrange(1, 18)
        x[:, :, f0:f0 + w] = 0
        t0 = random.randrange(max(1, x.shape[1] - 40))
        x[:, t0:t0 + random.randrange(1, 40)] = 0
    return x


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        prev, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            prev, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, prev + (x != y))
    return row[-1]


@torch.no_grad()
def validate(model, loader, device):
    model.eval()
    errors = total = 0
    for feats, fl, toks, tl in loader:
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits, ol = model(feats.to(device), fl.to(device))
        best = logits.argmax(-1).cpu()
        for path, n, ref in zip(best, ol.tolist(), toks.split(tl.tolist())):
            hyp = [t for t in torch.unique_consecutive(path[:n]).tolist() if t != 0]
            errors += edit_distance(hyp, ref.tolist())
            total += len(ref)
    return errors / total


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=32)
    ap.add_argument("--max-frames", type=int, default=1600)
    ap.add_argument("--utterances", type=int, default=2400)
    ap.add_argument("--dim", type=int, default=320)
    ap.add_argument("--layers", type=int, default=12)
    ap.add_argument("--epochs", type=int, default=3)
    args = ap.parse_args()
    torch.manual_seed(1)
    random.seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_set = Utterances(args.utterances, args.max_frames, 1)
    val_set = Utterances(args.utterances // 12, args.max_frames, 2)
    train = DataLoader(train_set, batch_sampler=BucketSampler(train_set.lengths, args.batch_size), collate_fn=collate,
                       num_workers=3, pin_memory=device.type == "cuda")
    val = DataLoader(val_set, batch_sampler=BucketSampler(val_set.lengths, args.batch_size, False), collate_fn=collate)
    model = Conformer(args.dim, args.layers).to(device)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f}M parameters")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=1e-3)
    warm = 100
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min((s + 1) / warm, (warm / (s + 1)) ** 0.5))
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for feats, fl, toks, tl in train:
            feats = spec_augment(feats.to(device, non_blocking=True))
            with torch.autocast(device.type, dtype=torch.bfloat16):
                logits, ol = model(feats, fl.to(device))
            logp = logits.float().log_softmax(-1).transpose(0, 1)
            loss = F.ctc_loss(logp, toks.to(device), ol, tl.to(device), zero_infinity=True)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(train):.3f} TER {validate(model, val, device):.3f}", flush=True)


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
