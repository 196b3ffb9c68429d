# SPDX-License-Identifier: Apache-2.0
"""A program that reads values which nobody has, and fails."""

import torch

x = torch.randn(1 << 20, device="cuda")
if x.sum() > 0:
    y = x[x > 0]
print(y.mean().item())
raise ValueError("the user's own mistake")
