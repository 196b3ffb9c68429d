# SPDX-License-Identifier: Apache-2.0
"""What nobody knows: a place that has no value, a mask that is written into after it said what it
holds, objects that do not say what they are made of."""

import torch


class Odd:
    def keys(self, kind):
        return [kind]

    def __getitem__(self, key):
        raise KeyError(key)


class Given(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(512, 512)

    def forward(self, odd, kind, x):
        return self.inner(x)


model = Given().cuda()
sgd = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(200, 512).cuda()
    y = model(Odd(), dict, x)
    place = torch.zeros_like(y.sum(1).argmax())
    mask = x[:, 0] > 0
    kept = torch.zeros_like(y)
    kept[mask] = y[:50]
    before = kept[mask]
    mask.view(2, 100).logical_or_(x[:, 1].view(2, 100) > 0)
    after = kept[mask]
    if step == 0:
        print(place.dim(), before.shape[0], after.shape[0])
    y.mean().backward()
    sgd.step()
    sgd.zero_grad()
