# SPDX-License-Identifier: Apache-2.0
"""A model of two equal layers, whose rows do not divide evenly."""

from torch import nn

WIDE, NARROW, ROWS = 270, 130, 16


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Sequential(nn.Linear(NARROW, WIDE), nn.ReLU(), nn.Linear(WIDE, NARROW))]
        layers += [nn.Sequential(nn.Linear(NARROW, WIDE), nn.ReLU(), nn.Linear(WIDE, NARROW))]
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x
