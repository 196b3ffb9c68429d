# SPDX-License-Identifier: Apache-2.0
"""A loop without a DataLoader that evaluates before it trains and at every hundredth step, and
steps by hand."""

import torch
from torch import nn

model = nn.Sequential(nn.Embedding(200, 64), nn.Linear(64, 200)).cuda()


def batch():
    return torch.randint(0, 200, (8, 32)).pin_memory().to("cuda", non_blocking=True)


@torch.no_grad()
def estimate():
    model.eval()
    losses = torch.zeros(20)
    for at in range(20):
        tokens = batch()
        losses[at] = nn.functional.cross_entropy(
            model(tokens).flatten(0, 1), tokens.flatten()
        ).item()
    model.train()
    return losses.mean()


for step in range(200):
    if step % 100 == 0:
        print(estimate())
    tokens = batch()
    nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.1 * parameter.grad
            parameter.grad = None
