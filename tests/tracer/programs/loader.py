# SPDX-License-Identifier: Apache-2.0
"""A DataLoader with workers and pinned memory that makes its iterators itself, a validation loop
behind each epoch, metrics that are collected."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset, dataloader, get_worker_info


MADE_IN = os.getpid()


class Pictures(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        # As a worker, and yet without a process of its own.
        assert get_worker_info() is not None and os.getpid() == MADE_IN
        return torch.full((3, 16, 16), float(index)), index % 10


# As litdata's.
class OfItsOwn(DataLoader):
    def _get_iterator(self):
        if self.num_workers == 0:
            return dataloader._SingleProcessDataLoaderIter(self)
        return dataloader._MultiProcessingDataLoaderIter(self)


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
train = OfItsOwn(
    Pictures(), batch_size=8, shuffle=True, num_workers=2, pin_memory=True, persistent_workers=True
)
assert train.num_workers == 2 and train.prefetch_factor == 2  # what PyTorch takes with workers
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
