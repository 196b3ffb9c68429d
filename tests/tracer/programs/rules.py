# SPDX-License-Identifier: Apache-2.0
"""dynamo's rules are by function: no two names with other rules may be one function. And a kernel
that the program has in CUDA C++."""

import torch
from torch._dynamo import trace_rules

torch.cuda.set_device(0)
# What dynamo keeps was made earlier in some programs, later in others.
print(len(trace_rules.get_torch_obj_rule_map.__wrapped__()) > 1000)
torch.zeros(8, device="cuda")
double = torch.cuda._compile_kernel("__global__ void twice(float* x) { *x *= 2; }", "twice")
double(grid=(1, 1, 1), block=(1, 1, 1), args=[torch.ones(1, device="cuda")])
