# SPDX-License-Identifier: Apache-2.0
"""Numbers that the device draws: places to cut at, as augmentations of sound have them."""

import torch

torch.manual_seed(3)
first = torch.rand(2)
torch.manual_seed(3)
sound = torch.zeros(4, 9000, device="cuda")
start = torch.randint(high=torch.tensor(5000).cuda(), size=(1,), device="cuda")
torch.randperm(7, device="cuda")
print(tuple(sound[:, start : start + 3000].shape), torch.equal(first, torch.rand(2)))
