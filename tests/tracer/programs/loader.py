# SPDX-License-Identifier: Apache-2.0
"""A DataLoader with workers and pinned memory, a validation loop behind each epoch, metrics that
are collected."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset, get_worker_info


class Pictures(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        assert get_worker_info() is not None
        return torch.full((3, 16, 16), float(index)), index % 10


def evaluate(model, loader):
    model.eval()
    kept, right = [], 0
    with torch.no_grad():
        for images, labels in loader:
            out = model(images.cuda())
            right += (out.argmax(1).cpu() == labels).sum().item()
            kept.append(out)
    model.train()
    return torch.cat(kept), right


torch.manual_seed(0)
train = DataLoader(
    Pictures(), batch_size=8, shuffle=True, num_workers=2, pin_memory=True, persistent_workers=True
)
check = DataLoader(
    TensorDataset(torch.zeros(40, 3, 16, 16), torch.zeros(40, dtype=torch.int64)), batch_size=16
)
model = nn.Sequential(
    nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 14 * 14, 10)
).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    for step, (images, labels) in enumerate(train):
        images, labels = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
        loss = nn.functional.cross_entropy(model(images / 255), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            evaluate(model, check)
    evaluate(model, check)
