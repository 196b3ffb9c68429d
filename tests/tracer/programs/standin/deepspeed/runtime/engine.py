# SPDX-License-Identifier: Apache-2.0
"""In the place of DeepSpeed's: an engine that steps each group of parameters alone, and once while
it is made."""


class DeepSpeedEngine:
    def __init__(self, optimizer):
        self.optimizer = optimizer
        self._take_model_step()

    def _take_model_step(self):
        groups = self.optimizer.param_groups
        for group in groups:
            self.optimizer.param_groups = [group]
            self.optimizer.step()
        self.optimizer.param_groups = groups
