# SPDX-License-Identifier: Apache-2.0
"""Language model with an LSTM over packed sequences, lengths that differ, tied embedding, truncated by a list of lengths."""
import argparse
import os

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

SMALL = os.environ.get("SMALL") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class LockedDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training:
            return x
        mask = x.new_empty(x.size(0), 1, x.size(2)).bernoulli_(1 - self.p) / (1 - self.p)
        return x * mask


class LM(nn.Module):
    def __init__(self, vocab, width, layers):
        super().__init__()
        self.embed = nn.Embedding(vocab, width, padding_idx=0)
        self.drop = LockedDropout(0.3)
        self.rnn = nn.LSTM(width, width, layers, batch_first=True, dropout=0.2)
        self.out = nn.Linear(width, vocab)
        self.out.weight = self.embed.weight

    def forward(self, ids, lengths):
        x = self.drop(self.embed(ids))
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        h, _ = self.rnn(packed)
        h, _ = pad_packed_sequence(h, batch_first=True)
        return self.out(self.drop(h))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()
    torch.manual_seed(0)
    vocab, width = (500, 64) if SMALL else (24000, 800)
    model = LM(vocab, width, 2).to(device)
    criterion = nn.CrossEntropyLoss(ignore_index=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    longest = [90, 60, 110, 75, 100]
    for step, top in enumerate(longest):
        lengths = torch.tensor([max(5, top - 7 * (i % 9)) for i in range(args.batch_size)])
        ids = pad_sequence([torch.randint(1, vocab, (n,)) for n in lengths.tolist()], batch_first=True).to(device)
        logits = model(ids[:, :-1], lengths - 1)
        loss = criterion(logits.reshape(-1, vocab), ids[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.25)
        optimizer.step()
        print(f"{step}: {loss.item():.3f}, perplexity {loss.exp().item():.1f}")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
