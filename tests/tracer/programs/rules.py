# SPDX-License-Identifier: Apache-2.0
"""dynamo's rules are by function: no two names with other rules may be one function."""

import torch
from torch._dynamo import trace_rules

torch.cuda.set_device(0)
# What dynamo keeps was made earlier in some programs, later in others.
print(len(trace_rules.get_torch_obj_rule_map.__wrapped__()) > 1000)
torch.zeros(8, device="cuda")
