# SPDX-License-Identifier: Apache-2.0
"""Sequential recommendation (SASRec with many negatives), item embedding tied to the output; validation ranks all items."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"


class Histories(Dataset):
    def __init__(self, users, items, length):
        g = torch.Generator().manual_seed(5)
        self.seq = torch.randint(1, items + 1, (users, length + 2), generator=g)
        n = torch.randint(0, length // 2, (users, 1), generator=g)
        self.seq[torch.arange(length + 2) < n] = 0

    def __len__(self):
        return len(self.seq)

    def __getitem__(self, u):
        s = self.seq[u]
        return s[:-2], s[1:-1], s[-1]


class SASRec(nn.Module):
    def __init__(self, items, length, d, layers, heads, dropout=0.2):
        super().__init__()
        self.item = nn.Embedding(items + 1, d, padding_idx=0)
        self.pos = nn.Embedding(length, d)
        layer = nn.TransformerEncoderLayer(d, heads, d * 4, dropout, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.drop, self.norm = nn.Dropout(dropout), nn.LayerNorm(d)

    def forward(self, seq):
        n = seq.shape[1]
        x = self.item(seq) * self.item.embedding_dim ** 0.5 + self.pos(torch.arange(n, device=seq.device))
        mask = nn.Transformer.generate_square_subsequent_mask(n, device=seq.device)
        return self.norm(self.encoder(self.drop(x), mask=mask, is_causal=True))


def gbce(model, h, pos, negs, items):
    neg = torch.randint(1, items + 1, (*pos.shape, negs), device=pos.device)
    p = (h * model.item(pos)).sum(-1)
    n = torch.einsum("bld,blnd->bln", h, model.item(neg))
    keep = (pos != 0).float()
    loss = -F.logsigmoid(p) * 0.3 - F.logsigmoid(-n).sum(-1)
    return (loss * keep).sum() / keep.sum()


def evaluate(model, loader, k=10):
    model.eval()
    hits, ndcg, ranks = [], [], []
    with torch.no_grad():
        for seq, _, last in loader:
            seq, last = seq.to(device), last.to(device)
            scores = model(seq)[:, -1] @ model.item.weight.T
            scores[:, 0] = -float("inf")
            scores.scatter_(1, seq, -float("inf"))
            rank = scores.argsort(dim=1, descending=True).argsort(dim=1).gather(1, last[:, None]).squeeze(1)
            ranks.append(rank)
    rank = torch.cat(ranks).float()
    hits = (rank < k).float().mean()
    ndcg = torch.where(rank < k, 1 / torch.log2(rank + 2), torch.zeros_like(rank)).mean()
    return hits.item(), ndcg.item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=256)
    p.add_argument("--negatives", type=int, default=64)
    args = p.parse_args()
    torch.manual_seed(0)
    items, length, d, layers, heads = (200, 20, 32, 2, 2) if SMALL else (60_000, 100, 256, 3, 4)
    bs = 8 if SMALL else args.batch_size
    data = Histories(40 if SMALL else 2000, items, length)
    train = DataLoader(data, bs, shuffle=True)
    val = DataLoader(data, 16 if SMALL else 512)
    model = SASRec(items, length, d, layers, heads).to(device)
    emb = [model.item.weight]
    others = [q for n, q in model.named_parameters() if not n.startswith("item.")]
    optimizer = torch.optim.Adagrad([{"params": emb, "lr": 0.05}, {"params": others, "lr": 0.01}], initial_accumulator_value=0.1)
    for epoch in range(2):
        model.train()
        for seq, pos, _ in train:
            seq, pos = seq.to(device), pos.to(device)
            loss = gbce(model, model(seq), pos, args.negatives, items)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f} HR@10, NDCG@10 {evaluate(model, val)}")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
