# SPDX-License-Identifier: Apache-2.0
"""Rows that a mask picks: one made by slices, as LoRA's merged layers have it, and one on the GPU
whose contents nobody has."""

import torch


class Padded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(96, 512), requires_grad=False)
        self.rows = torch.nn.Parameter(torch.randn(64, 512))
        mask = self.weight.new_zeros((96,), dtype=torch.bool).view(3, -1)
        mask[[True, False, True], :] = True
        self.mask = mask.view(-1)

    def forward(self, x):
        whole = self.rows.new_zeros((96, 512))
        whole[self.mask] = self.rows
        return x @ (self.weight + whole).T


model = Padded().cuda()
sgd = torch.optim.SGD([model.rows], lr=0.1)
for step in range(3):
    x = torch.randn(200, 512).cuda()
    y = model(x)
    kept = torch.zeros_like(y)
    kept[x.sum(1) > 0] = y[:50]
    (kept.square().mean() + y.mean()).backward()
    # Zeros of which a part is written over.
    shifted = x.long().new_zeros(200)
    shifted[1:] = x[1:, 0].long()
    if step == 0:
        print((shifted != 0).nonzero().shape[0])
    sgd.step()
    sgd.zero_grad()
