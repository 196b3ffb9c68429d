# SPDX-License-Identifier: Apache-2.0
"""Autocast to bf16 and to fp16 with a scaler; the fp16 pass reads the scale."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.LayerNorm(512), nn.Linear(512, 256)).cuda()
optimizer = torch.optim.Adam(model.parameters())
scaler = torch.amp.GradScaler("cuda")
for step in range(4):
    x = torch.randn(64, 256, device="cuda")
    half = torch.float16 if step % 2 else torch.bfloat16
    with torch.autocast("cuda", dtype=half):
        loss = nn.functional.binary_cross_entropy_with_logits(
            model(x), torch.rand(64, 256, device="cuda")
        )
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    if loss.item() > 1e9 or torch.isnan(loss):
        raise SystemExit(1)
