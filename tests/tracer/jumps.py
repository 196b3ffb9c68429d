# SPDX-License-Identifier: Apache-2.0
"""A jump of the CPU generator gives what as many draws give."""

import torch
from ops.generator_jump import jump


def next_ones():
    return torch.randperm(50).tolist(), torch.rand(2000).tolist(), torch.randn(33).tolist()


for seed, before, count in (
    (0, 0, 1248),
    (5, 1, 1249),
    (7, 623, 5000),
    (7, 624, 62400),
    (9, 625, 20000003),
):
    torch.manual_seed(seed)
    torch.empty(before, dtype=torch.uint8).random_()
    start = torch.default_generator.get_state()
    torch.empty(count, dtype=torch.uint8).random_()
    drawn = next_ones()
    torch.default_generator.set_state(start)
    jump(torch, count)
    assert drawn == next_ones(), count
