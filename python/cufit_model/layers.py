# SPDX-License-Identifier: Apache-2.0
"""Layers of a model, and others in their place."""

import torch


def count(module):
    return sum(p.numel() for p in module.parameters())


def features(layer):
    if hasattr(layer, "nf"):  # transformers' Conv1D
        return layer.weight.shape[0], layer.nf
    return layer.in_features, layer.out_features


def is_linear(layer):
    return isinstance(layer, torch.nn.Linear) or type(layer).__name__ == "Conv1D"


# Modules with their parents; `wanted` says which.
def replace(model, wanted, make):
    done = []
    for path, parent in list(model.named_modules()):
        for name, child in list(parent.named_children()):
            full = path + "." + name if path else name
            if wanted(full, child):
                setattr(parent, name, make(child))
                done.append(full)
    return done
