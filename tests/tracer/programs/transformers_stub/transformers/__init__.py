# SPDX-License-Identifier: Apache-2.0
"""As much of transformers as one small model needs. Two ranks can share each layer."""

import types

import torch
from torch import nn

__version__ = "0"


class Config(types.SimpleNamespace):
    @classmethod
    def from_dict(cls, values):
        return cls(**values)


class PreTrainedModel(nn.Module):
    pass


class Block(nn.Module):
    def __init__(self, hidden, wide):
        super().__init__()
        self.norm = nn.LayerNorm(hidden)
        self.up_proj = nn.Linear(hidden, wide)
        self.down_proj = nn.Linear(wide, hidden)

    def forward(self, x):
        return x + self.down_proj(torch.relu(self.up_proj(self.norm(x))))


class SmallForCausalLM(PreTrainedModel):
    config_class = Config
    main_input_name = "input_ids"
    _tp_plan = {"layers.*.up_proj": "colwise", "layers.*.down_proj": "rowwise"}

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.hidden)
        self.layers = nn.ModuleList(Block(config.hidden, config.wide) for _ in range(config.layers))
        self.head = nn.Linear(config.hidden, config.vocab_size, bias=False)

    def get_output_embeddings(self):
        return self.head

    def forward(self, input_ids, attention_mask, labels):
        x = self.embed(input_ids)
        for layer in self.layers:
            x = layer(x)
        logits = self.head(x).float()
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return types.SimpleNamespace(loss=loss)
