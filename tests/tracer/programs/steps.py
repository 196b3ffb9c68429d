# SPDX-License-Identifier: Apache-2.0
"""A step as a function, for `--function steps:make_step`."""

import torch
from torch import nn


def make_step(batch, seq=16):
    model = nn.Sequential(nn.Embedding(100, 32), nn.Linear(32, 100)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())

    def step():
        tokens = torch.randint(0, 100, (batch, seq), device="cuda")
        nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step
