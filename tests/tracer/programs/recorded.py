# SPDX-License-Identifier: Apache-2.0
"""A batch is copied ahead on another stream, and nothing waits for the device: what was freed is
taken again once so many operators followed."""

import sys

import torch
from torch import nn

operators = int(sys.argv[1])
ahead = torch.cuda.Stream()
model = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    with torch.cuda.stream(ahead):
        batch = torch.ones(1 << 12, 64).to("cuda", non_blocking=True)
    batch.record_stream(torch.cuda.current_stream())
    out = model(batch)
    for _ in range(operators):
        out = out + 1
    out.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    del batch, out
