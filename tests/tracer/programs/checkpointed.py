# SPDX-License-Identifier: Apache-2.0
"""Saves behind each epoch as libraries do: to a file of another name first, then under its own."""

import os
import shutil
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

folder = os.path.join(tempfile.gettempdir(), "cufit-checkpointed")


def save(move, name):
    os.makedirs(os.path.dirname(__file__), exist_ok=True)
    handle, path = tempfile.mkstemp()
    with os.fdopen(handle, "wb") as file:
        file.write(b"weights")
    move(path, os.path.join(folder, name))
    os.chmod(os.path.join(folder, name), 0o644)
    with open(os.path.join(folder, name), "rb") as file:
        print(name, file.read().decode(), os.path.exists(path))


data = DataLoader(TensorDataset(torch.ones(64, 16)), batch_size=8)
model = nn.Linear(16, 16).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    for (rows,) in data:
        model(rows.cuda()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        model.eval()(torch.ones(32, 16).cuda())
    model.train()
    save(shutil.move, "moved")
    save(os.replace, "replaced")
    save(os.rename, "renamed")
    os.remove(os.path.join(folder, "renamed"))
