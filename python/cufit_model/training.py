# SPDX-License-Identifier: Apache-2.0
"""Optimizers and the training loop."""

import torch

from .layers import count
from .spec import AUTOCAST, SPEC, STEPS, note


class AdamW8bit(torch.optim.Optimizer):
    """The storages of bitsandbytes' AdamW8bit: two states of a byte for each value, a scale for
    256; small parameters keep fp32. Its kernel makes nothing."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 1e-4})

    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None or self.state[parameter]:
                    continue
                elements = parameter.numel()
                small = elements < 4096
                for name in ("state1", "state2"):
                    self.state[parameter][name] = torch.zeros_like(
                        parameter, dtype=torch.float32 if small else torch.uint8
                    )
                    if not small:
                        self.state[parameter]["absmax_" + name] = torch.zeros(
                            (elements + 255) // 256, dtype=torch.float32, device="cuda"
                        )


def make_optimizer(parameters):
    parameters = [parameter for parameter in parameters if parameter.requires_grad]
    note("trained", format(sum(parameter.numel() for parameter in parameters), ","))
    if SPEC["optimizer"] == "adamw8bit":
        return AdamW8bit(parameters)
    if SPEC["optimizer"] == "sgd":
        return torch.optim.SGD(parameters, lr=1e-3)
    if SPEC["optimizer"] == "adamw-foreach":
        return torch.optim.AdamW(parameters, lr=1e-4)
    return torch.optim.AdamW(parameters, lr=1e-4, fused=True)


def train(model, loss_of):
    model.train()
    optimizer = make_optimizer(model.parameters())
    scaler = torch.amp.GradScaler("cuda", enabled=AUTOCAST == torch.float16)
    for _ in range(STEPS + 1):
        with torch.autocast("cuda", dtype=AUTOCAST or torch.bfloat16, enabled=AUTOCAST is not None):
            loss = loss_of()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        del loss


def built(model, by):
    note("built", "{}, {:,}, {}".format(type(model).__name__, count(model), by))
    written = SPEC.get("parameters") or 0
    there = count(model)
    # Tied weights are written once; a checkpoint may hold what training leaves out.
    if written and abs(there - written) > 0.02 * there:
        note("count", "{:,} / {:,}".format(written, there))
