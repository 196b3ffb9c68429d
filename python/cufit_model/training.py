# SPDX-License-Identifier: Apache-2.0
"""Optimizers and the training loop."""

import torch

from .layers import count
from .ranks import ARITHMETIC, CAST, HOW, groups_of, own_part
from .spec import SPEC, STEPS, note


class AdamW8bit(torch.optim.Optimizer):
    """The storages of bitsandbytes' AdamW8bit: two states of a byte for each value, a scale for
    256; small parameters keep fp32. Its kernel makes nothing."""

    def __init__(self, parameters, lr=1e-4):
        super().__init__(parameters, {"lr": lr})

    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None or self.state[parameter]:
                    continue
                part = own_part(parameter)
                elements = part.numel()
                small = elements < 4096
                for name in ("state1", "state2"):
                    self.state[parameter][name] = torch.zeros_like(
                        part, dtype=torch.float32 if small else torch.uint8
                    )
                    if not small:
                        self.state[parameter]["absmax_" + name] = torch.zeros(
                            (elements + 255) // 256, dtype=torch.float32, device="cuda"
                        )


KINDS = {
    "adamw": (torch.optim.AdamW, {"lr": 1e-4, "fused": True}),
    "adamw-foreach": (torch.optim.AdamW, {"lr": 1e-4}),
    "adamw8bit": (AdamW8bit, {"lr": 1e-4}),
    "sgd": (torch.optim.SGD, {"lr": 1e-3}),
}


def make_optimizer(parameters):
    parameters = [parameter for parameter in parameters if parameter.requires_grad]
    note("trained", format(sum(parameter.numel() for parameter in parameters), ","))
    kind, options = KINDS[SPEC["optimizer"]]
    if HOW == "zero1":
        from torch.distributed.optim import ZeroRedundancyOptimizer

        return ZeroRedundancyOptimizer(parameters, optimizer_class=kind, **options)
    return kind(groups_of(parameters), **options)


def train(model, loss_of):
    model.train()
    optimizer = make_optimizer(model.parameters())
    scaler = torch.amp.GradScaler("cuda", enabled=torch.float16 in (ARITHMETIC, CAST))
    for _ in range(STEPS + 3):  # for plans two micro-batches more
        with torch.autocast(
            "cuda", dtype=ARITHMETIC or torch.bfloat16, enabled=ARITHMETIC is not None
        ):
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
