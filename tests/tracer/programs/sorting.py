# SPDX-License-Identifier: Apache-2.0
"""Orders, choices and places: long rows are sorted by parts, short ones in a thread block."""

import torch

torch.manual_seed(0)

# In rows of at most 4096 and of more.
for rows, length in ((300, 4096), (300, 4097), (4, 70000)):
    values = torch.empty(rows, length, device="cuda").sort(dim=1)
    del values
x = torch.randn(64, 100).cuda().requires_grad_()
kept = x[x > 0]
top = x.topk(5, dim=1)
chosen = torch.nonzero(x.detach() > 1)
different, where, counts = torch.unique(
    torch.randint(0, 9, (5000,), device="cuda"), return_inverse=True, return_counts=True
)
summed = torch.cumsum(torch.ones(70, 70, dtype=torch.bool, device="cuda"), -1)
table = torch.zeros(100, 8, device="cuda").index_put(
    (torch.zeros(500, dtype=torch.int64, device="cuda"),),
    torch.ones(500, 8, device="cuda"),
    accumulate=True,
)
drawn = torch.multinomial(torch.rand(16, 500, device="cuda"), 3)
joined = torch.cat(
    [torch.bincount(torch.randint(0, 5, (20,)).cuda(), minlength=5), torch.arange(4, device="cuda")]
)
hot = torch.nn.functional.one_hot(torch.randint(0, 9, (50,), device="cuda"), 9)
(
    kept.sum()
    + top.values.sum()
    + x.cumprod(1).sum()
    + x.max(1).values.sum()
    + x.masked_fill(x > 2, 0).sum()
).backward()
print(
    chosen.shape,
    different.shape,
    where.shape,
    counts.shape,
    summed.dtype,
    table.shape,
    drawn.shape,
    joined.sum().item(),
    hot.shape,
)
