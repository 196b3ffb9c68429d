# SPDX-License-Identifier: Apache-2.0
"""Operators that a step has called before, and a function that is decorated and never called. Says
how often each step asked the fake kernels."""

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

asked = []
dispatch = FakeTensorMode.dispatch


def counted(self, func, *args, **kwargs):
    asked.append(func)
    return dispatch(self, func, *args, **kwargs)


FakeTensorMode.dispatch = counted


@torch.compile
def never_called(x):
    return x + 1


weight = torch.empty(64, 32, device="cuda")
for step in range(3):
    x = torch.empty(8, 64, device="cuda", dtype=torch.bfloat16)
    began = len(asked)
    wide = x.float()
    y = (wide @ weight).view(2, 4, 32).transpose(1, 2)
    left, right = y.clone().split(16, dim=1)
    total = torch.nn.functional.silu(left) * right.sum(dim=-1, keepdim=True)
    print(step, len(asked) - began)
    del x, wide, y, left, right, total

boxes = torch.empty(100000, 4, device="cuda")
assert (boxes[:, 2:] >= boxes[:, :2]).all()
if not (boxes[:, 2:] >= boxes[:, :2]).all():
    raise ValueError(f"corners are not in order: {boxes.shape}")
if (boxes[:, 2:] < boxes[:, :2]).any():
    raise ValueError("corners are not in order")
assert not (boxes[:, 2:] < boxes[:, :2]).any()

# How many rows choose each of eight is known; of other sums of the same shape it is not.
(torch.empty(8192, 8, device="cuda") * 5).long().sum(0)
chosen = torch.empty(8192, 8, device="cuda").argmax(-1)
assert torch.nn.functional.one_hot(chosen, 8).sum(0).tolist() == 8 * [1024]
