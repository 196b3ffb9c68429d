# SPDX-License-Identifier: Apache-2.0
"""One of two stages of DeepSpeed's pipeline: zero_pipe.py RANK."""

import os
import sys

import deepspeed
import torch
from deepspeed.pipe import LayerSpec, PipelineModule
from torch import nn

rank = sys.argv[1]
variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2", "MASTER_ADDR": "localhost"}
os.environ.update(variables, MASTER_PORT="29500")
deepspeed.init_distributed()
layers = [LayerSpec(nn.Linear, 64, 192), LayerSpec(nn.Linear, 192, 32)]
model = PipelineModule(layers, num_stages=2, loss_fn=nn.MSELoss(), partition_method="uniform")
rows = [(torch.ones(64), torch.ones(32)) for _ in range(256)]
engine, _, _, _ = deepspeed.initialize(
    model=model,
    model_parameters=list(model.parameters()),
    training_data=rows,
    config={
        "train_micro_batch_size_per_gpu": 4,
        "gradient_accumulation_steps": 4,
        "optimizer": {"type": "Adam", "params": {"lr": 1e-4}},
    },
)
for _ in range(4):
    engine.train_batch()
