# SPDX-License-Identifier: Apache-2.0
"""What is done in place takes no memory, what is not does; what is dropped is given back."""

import torch

x = torch.zeros(1 << 16, device="cuda")
before = torch.cuda.memory_allocated()
x.add_(1).mul_(2).relu_().clamp_(0, 1)
x[:100] = 3
x.view(256, 256).t_()
torch.add(x, 1, out=x)
assert torch.cuda.memory_allocated() == before
y = x + 1
assert torch.cuda.memory_allocated() == before + (1 << 18)
z = y.sin().cos()
print(torch.cuda.memory_allocated() - before, torch.cuda.max_memory_allocated() - before)
del y
assert torch.cuda.memory_allocated() == before + (1 << 18)
del z
assert torch.cuda.memory_allocated() == before
leaf = torch.zeros(512, 512, device="cuda", requires_grad=True)
for _ in range(2):
    value = leaf * 2
    (value.sin() + value.cos() + value.exp()).sum().backward()
del value
print(torch.cuda.memory_allocated() - before)
