# SPDX-License-Identifier: Apache-2.0
"""Linear layers, gelu and dropout under an optimizer named by the first argument."""

import sys

import torch
from torch import nn

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.1),
    "fused": lambda p: torch.optim.AdamW(p, lr=0.1, fused=True),
    "loop": lambda p: torch.optim.Adam(p, lr=0.1, foreach=False, amsgrad=True),
    "adafactor": lambda p: torch.optim.Adafactor(p, lr=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.1, momentum=0.9, centered=True),
}
BATCH, INSIDE, HIDDEN, OUTSIDE = 32, 256, 512, 128
model = nn.Sequential(
    nn.Linear(INSIDE, HIDDEN), nn.GELU(), nn.Dropout(0.1), nn.Linear(HIDDEN, OUTSIDE)
)
model = model.cuda()
optimizer = OPTIMIZERS[sys.argv[1] if len(sys.argv) > 1 else "adamw"](model.parameters())
for _ in range(5):
    x = torch.randn(BATCH, INSIDE).cuda()
    y = torch.randn(BATCH, OUTSIDE, device="cuda")
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(loss.item())
