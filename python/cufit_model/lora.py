# SPDX-License-Identifier: Apache-2.0
"""LoRA, by peft where it is installed, else by hand."""

import torch

from .layers import features, is_linear, replace
from .spec import SPEC, note, stop


class Lora(torch.nn.Module):
    """Two fp32 factors beside a frozen layer. Where the arithmetic is kohya's, the input goes into
    the first as it is; peft first makes it fp32."""

    def __init__(self, base, rank, cast):
        super().__init__()
        self.base_layer = base
        self.cast = cast
        if isinstance(base, torch.nn.Conv2d):
            self.down = torch.nn.Conv2d(
                base.in_channels, rank, base.kernel_size, base.stride, base.padding, bias=False
            )
            self.up = torch.nn.Conv2d(rank, base.out_channels, 1, bias=False)
        else:
            inside, outside = features(base)
            self.down = torch.nn.Linear(inside, rank, bias=False)
            self.up = torch.nn.Linear(rank, outside, bias=False)

    def forward(self, x, *args, **kwargs):
        result = self.base_layer(x)
        if self.cast:
            return result + self.up(self.down(x.to(self.down.weight.dtype))) * 2.0
        return result + self.up(self.down(x)) * 1.0 * 0.5


def tell_targets(paths, how):
    names = []
    for path in paths:
        parts = [part for part in path.split(".") if not part.isdigit()]
        last = parts[-1] if len(parts[-1]) > 3 or len(parts) < 2 else ".".join(parts[-2:])
        if last not in names:
            names.append(last)
    note(
        "lora_targets",
        "%d: %s (%s)"
        % (len(paths), ", ".join(sorted(names)[:16]) + (", ..." if len(names) > 16 else ""), how),
    )


def lora_language(model, rank):
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    targets = SPEC.get("lora_targets") or "all"
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    try:
        import peft
    except ImportError:
        peft = None
    if peft is not None:
        chosen = (
            "all-linear"
            if targets == "all"
            else None
            if targets == "default"
            else targets.split(",")
        )
        try:
            model = peft.get_peft_model(
                model,
                peft.LoraConfig(
                    r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules=chosen
                ),
            )
        except ValueError as error:
            stop("targets", error)
        paths = [
            name
            for name, module in model.named_modules()
            if hasattr(module, "lora_A") and hasattr(module, "base_layer")
        ]
        prefix = "base_model.model."
        tell_targets(
            [p[len(prefix) :] if p.startswith(prefix) else p for p in paths],
            "peft " + peft.__version__,
        )
        return model
    if targets == "default":
        stop("missing", "peft")
    names = None if targets == "all" else targets.split(",")

    def wanted(path, m):
        named = names is None or path.split(".")[-1] in names
        return is_linear(m) and m is not head and named and not isinstance(m, Lora)

    paths = replace(model, wanted, lambda m: Lora(m, rank, True))
    if not paths:
        stop("targets", targets)
    tell_targets(paths, "cufit")
    return model


# The layers that sd-scripts' networks.lora adapts: linear layers and 1x1 convolutions of the
# transformer blocks.
def lora_diffusion(model, rank):
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    blocks = [
        path
        for path, module in model.named_modules()
        if type(module).__name__ in SPEC["lora_blocks"]
    ]

    def wanted(path, module):
        fits = (
            isinstance(module, torch.nn.Linear)
            or isinstance(module, torch.nn.Conv2d)
            and tuple(module.kernel_size) == (1, 1)
        )
        return fits and any(path.startswith(block + ".") for block in blocks)

    paths = replace(model, wanted, lambda m: Lora(m, rank, False))
    if not paths:
        stop("targets", ", ".join(SPEC["lora_blocks"]))
    tell_targets(paths, ", ".join(SPEC["lora_blocks"]))
    return model
