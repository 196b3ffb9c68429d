# SPDX-License-Identifier: Apache-2.0
"""A loop of episodes that no DataLoader feeds. Behind it stands what compares an episode's value:
in the few steps of a trace there was none."""

import torch
from torch import nn

policy = nn.Linear(16, 4).cuda()
optimizer = torch.optim.Adam(policy.parameters())
returned = None


def score(rows):
    policy.eval()
    with torch.no_grad():
        return policy(torch.ones(rows, 16, device="cuda"))


for episode in range(400):
    policy.train()
    policy(torch.ones(8, 16, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if episode % 100 == 99:
        returned = episode
best = 3 < returned
score(512)
