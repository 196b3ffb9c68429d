# SPDX-License-Identifier: Apache-2.0
"""Steps within a device's context, and the GPU's own generator."""

import torch
from torch.utils.checkpoint import get_device_states

model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.cuda.default_generators[0].manual_seed(1)
for _ in range(5):
    with torch.cuda.device(0):
        x = torch.ones(4, 64, device="cuda")
        with torch.cuda.device_of(x):
            assert len(get_device_states(x)[0]) == 1
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
