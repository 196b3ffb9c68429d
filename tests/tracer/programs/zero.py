# SPDX-License-Identifier: Apache-2.0
"""One rank of two under DeepSpeed's ZeRO: zero.py STAGE."""

import os
import sys

import deepspeed
import torch
from torch import nn

variables = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost"}
os.environ.update(variables, MASTER_PORT="29500")
WIDE, NARROW = 270, 130
layers = [nn.Linear(NARROW, WIDE), nn.ReLU(), nn.Linear(WIDE, NARROW)]
engine, _, _, _ = deepspeed.initialize(
    model=nn.Sequential(*layers),
    config={
        "train_micro_batch_size_per_gpu": 4,
        "bf16": {"enabled": True},
        "gradient_clipping": 1.0,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
        "zero_optimization": {
            "stage": int(sys.argv[1]),
            "reduce_bucket_size": 40000,
            "stage3_param_persistence_threshold": 0,
        },
    },
)
for _ in range(4):
    x = torch.ones(4, NARROW, device=engine.device, dtype=torch.bfloat16)
    engine.backward(engine(x).sum())
    engine.step()
