# SPDX-License-Identifier: Apache-2.0
"""Translation with nn.Transformer, after the tutorial: positional encoding, masks, padding, label smoothing, Noam schedule."""
import argparse
import math
import os

import torch
import torch.nn as nn

SMALL = os.environ.get("SMALL") == "1"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
PAD = 1


class Positional(nn.Module):
    def __init__(self, width, dropout, longest=500):
        super().__init__()
        den = torch.exp(-torch.arange(0, width, 2) * math.log(10000) / width)
        pos = torch.arange(longest).reshape(longest, 1)
        table = torch.zeros(longest, width)
        table[:, 0::2], table[:, 1::2] = torch.sin(pos * den), torch.cos(pos * den)
        self.register_buffer("table", table[:, None])
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(x + self.table[:x.size(0)])


class Seq2Seq(nn.Module):
    def __init__(self, layers, width, heads, source, target, hidden):
        super().__init__()
        self.transformer = nn.Transformer(width, heads, layers, layers, hidden, 0.1)
        self.generator = nn.Linear(width, target)
        self.src, self.tgt = nn.Embedding(source, width), nn.Embedding(target, width)
        self.pos, self.width = Positional(width, 0.1), width

    def forward(self, src, tgt, tgt_mask, src_pad, tgt_pad):
        a = self.pos(self.src(src) * math.sqrt(self.width))
        b = self.pos(self.tgt(tgt) * math.sqrt(self.width))
        return self.generator(self.transformer(a, b, None, tgt_mask, None, src_pad, tgt_pad, src_pad))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=56)
    args = parser.parse_args()
    torch.manual_seed(0)
    source, target = (300, 200) if SMALL else (19000, 11000)
    model = Seq2Seq(2 if SMALL else 5, 512, 8, source, target, 1536)
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.xavier_uniform_(p)
    model = model.to(DEVICE)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: 512 ** -0.5 * min((i + 1) ** -0.5, (i + 1) * 4000 ** -1.5))
    for step, (n, m) in enumerate([(60, 64), (72, 70), (48, 52), (80, 77), (66, 71)]):
        src, tgt = torch.randint(4, source, (n, args.batch_size)), torch.randint(4, target, (m, args.batch_size))
        for i in range(args.batch_size):
            src[n - i % 11:, i] = PAD
            tgt[m - i % 7:, i] = PAD
        src, tgt = src.to(DEVICE), tgt.to(DEVICE)
        inside = tgt[:-1]
        mask = nn.Transformer.generate_square_subsequent_mask(m - 1, device=DEVICE).isinf()
        logits = model(src, inside, mask, (src == PAD).t(), (inside == PAD).t())
        optimizer.zero_grad()
        loss = criterion(logits.reshape(-1, target), tgt[1:].reshape(-1))
        loss.backward()
        optimizer.step()
        schedule.step()
        print(step, loss.item())


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
