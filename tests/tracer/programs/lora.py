# SPDX-License-Identifier: Apache-2.0
"""A frozen base in bf16 with two small factors beside each layer, checkpointed, two micro-batches
for a step."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Lora(nn.Module):
    def __init__(self, base, rank):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x.float())).to(x.dtype)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.RMSNorm(width, dtype=torch.bfloat16).requires_grad_(False)
        self.layers = nn.Sequential(
            Lora(nn.Linear(width, 4 * width, dtype=torch.bfloat16), 8),
            nn.SiLU(),
            Lora(nn.Linear(4 * width, width, dtype=torch.bfloat16), 8),
        )

    def forward(self, x):
        return x + self.layers(self.norm(x))


blocks = nn.ModuleList(Block(128) for _ in range(3)).cuda()
trained = [p for p in blocks.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=1e-4)
for step in range(10):
    x = torch.randn(4, 64, 128, device="cuda", dtype=torch.bfloat16)
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False)
    (x.float().pow(2).mean() / 2).backward()
    if step % 2:
        optimizer.step()
        optimizer.zero_grad()
