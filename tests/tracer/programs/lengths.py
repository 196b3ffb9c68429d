# SPDX-License-Identifier: Apache-2.0
"""Batches of different lengths from a DataLoader of token rows."""

import torch
from torch import nn
from torch.utils.data import DataLoader


def collate(rows):
    longest = max(len(row) for row in rows)
    return {
        "tokens": torch.stack([torch.cat([row, row.new_zeros(longest - len(row))]) for row in rows])
    }


data = [torch.arange(5 + index * 7 % 40) for index in range(64)]
loader = DataLoader(data, batch_size=4, collate_fn=collate)
model = nn.Sequential(nn.Embedding(64, 32), nn.Linear(32, 64)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    for batch in loader:
        tokens = batch["tokens"].cuda()
        nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
