# SPDX-License-Identifier: Apache-2.0
"""What is saved comes back, within this run and without contents on the disk."""

import os
import pathlib
import tempfile

import numpy
import torch
from torch import nn

folder = tempfile.mkdtemp()
model = nn.Linear(512, 512).cuda()
optimizer = torch.optim.AdamW(model.parameters())
best = os.path.join(folder, "best.pt")
for step in range(3):
    model(torch.randn(8, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.save(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, best
    )
    torch.save(step, pathlib.Path(folder, "last.pt"))
    state = torch.load(best, map_location="cuda" if step else "cpu", weights_only=False)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    numpy.save(os.path.join(folder, "out"), model.weight.detach().cpu().numpy())
    array = numpy.load(os.path.join(folder, "out.npy"))
    print(state["step"], array.shape, os.path.exists(best))
