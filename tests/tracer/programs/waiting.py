# SPDX-License-Identifier: Apache-2.0
"""Before its first step it does nothing for a minute, or other things for 25
seconds."""

import sys
import time

import torch

weight = torch.ones(64, 64, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
if sys.argv[1] == "sleep":
    time.sleep(60)
else:
    end = time.monotonic() + 25
    while time.monotonic() < end:
        weight.detach() * 2
        time.sleep(0.01)
for _ in range(5):
    (weight * weight).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
