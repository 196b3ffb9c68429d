# SPDX-License-Identifier: Apache-2.0
"""Products of groups, as experts have them: in bf16 the fake kernel answers, in other types the
tracer does."""

import torch

if not hasattr(torch, "_grouped_mm"):
    raise SystemExit("this torch has no _grouped_mm")
GROUPS, ROWS, INSIDE, OUTSIDE = 4, 64, 32, 20
ends = torch.tensor([16, 32, 48, 64], dtype=torch.int32, device="cuda")
for dtype in (torch.bfloat16, torch.float16, torch.float32):
    x = torch.zeros(ROWS, INSIDE, device="cuda", dtype=dtype)
    experts = torch.zeros(
        GROUPS, INSIDE, 24 if dtype == torch.bfloat16 else OUTSIDE, device="cuda", dtype=dtype
    )
    out = torch.ops.aten._grouped_mm.default(x, experts, ends)
    print(tuple(out.shape), out.stride())
