# SPDX-License-Identifier: Apache-2.0
"""What is switched on in the program, and what is learnt of it."""

import os
import sys
import weakref

from ..event_file import BACKWARD, MICRO_BATCH
from .dealt import Dealt, step_of_own


class Variant:
    def __init__(self, tracer, names):
        self.tracer, self.torch = tracer, tracer.torch
        self.names = names
        self.dealt = Dealt(names)
        self.made = weakref.WeakSet()  # optimizers
        self.roots = {}
        self.skipped = set()  # optimizers that let a micro-batch pass
        self.accumulating = self.accumulated = False
        self.fetched = self.backwards = 0
        self.autocast = None  # entered here
        self.facts = {
            "variant": ",".join(name for name in names if not name.startswith("cast_")),
            "autocast": "",
            "checkpointing": "",
            "checkpointing_at": "",
            "framework": "",
            "precision": "",
            "optimizer": "",
            "optimizer_form": "",
            "optimizer_can": "",
            "optimizer_at": "",
            "forward_at": "",
            "micro_batches": 1,
        }

    # -- the model

    def before_forward(self, module):
        torch, tracer = self.torch, self.tracer
        if tracer.phase == BACKWARD:
            self.facts["checkpointing"] = "on"
            return
        if not module.training or not torch.is_grad_enabled():
            return
        if self.autocast is None and torch.is_autocast_enabled("cuda"):
            self.facts["autocast"] = str(torch.get_autocast_dtype("cuda"))[6:]
        if len(tracer.modules) != 1 or next(module.parameters(), None) is None:
            return
        if id(module) not in self.roots:
            self.roots[id(module)] = module
            self.learn_root(module)
        dtype = (
            torch.bfloat16
            if "bf16" in self.names
            else torch.float16
            if "fp16" in self.names
            else None
        )
        # accelerate has wrapped the model's forward by itself. Elsewhere forward and loss are under
        # autocast, backward is not.
        if dtype is not None and self.autocast is None and "_original_forward" not in vars(module):
            self.autocast = torch.autocast("cuda", dtype=dtype)
            self.autocast.__enter__()

    def before_backward(self):
        if self.tracer.phase == BACKWARD:  # of a part that is computed again
            return
        if self.autocast is not None:
            self.autocast.__exit__(None, None, None)
            self.autocast = None
        self.backwards += 1
        if self.skipped and self.has_gradients():
            self.accumulated = True

    # FSDP has other parameters in the model while a block is gathered than the optimizer steps.
    def has_gradients(self):
        found = [p for root in self.roots.values() for p in root.parameters()]
        found += [p for o in self.made for group in o.param_groups for p in group["params"]]
        return any(p.grad is not None for p in found)

    def learn_root(self, root):
        sizes = {}
        for parameter in root.parameters():
            sizes[parameter.dtype] = sizes.get(parameter.dtype, 0) + parameter.numel()
        if sum(sizes.values()) <= sum(
            p.numel()
            for other in self.roots.values()
            if other is not root
            for p in other.parameters()
        ):
            return  # of several, the largest is the one that is spoken of
        self.facts["precision"] = str(max(sizes, key=sizes.get))[6:]
        self.learn_sharing(root)
        self.facts["forward_at"] = self.tracer.source()
        kind, at, switch = self.way_of_checkpointing(root)
        self.facts["checkpointing_at"] = at
        if self.facts["checkpointing"] != "on":
            self.facts["checkpointing"] = kind
        if kind and "checkpointing" in self.names:
            switch()

    # What ranks send each other, of a shard its whole; and what FSDP would wrap.
    def learn_sharing(self, root):
        distributed = self.torch.distributed
        if not distributed.is_available() or not distributed.is_initialized():
            return
        if distributed.get_world_size() < 2:
            return
        sizes = [(p.requires_grad, p.numel() * p.element_size()) for p in root.parameters()]
        self.facts["weights_bytes"] = sum(size for _, size in sizes)
        self.facts["blocks_at"] = " ".join(name for name, _ in self.repeated_blocks(root, ""))
        self.facts["trained_bytes"] = sum(size for trained, size in sizes if trained)

    def way_of_checkpointing(self, root):
        import functools

        for name, module in root.named_modules():
            if getattr(module, "is_gradient_checkpointing", False) is True:
                return "on", name, None
            if getattr(module, "supports_gradient_checkpointing", False) is True and hasattr(
                module, "gradient_checkpointing_enable"
            ):
                enable = functools.partial(
                    module.gradient_checkpointing_enable,
                    gradient_checkpointing_kwargs={"use_reentrant": False},
                )
                return "transformers", name, enable
            if hasattr(module, "set_grad_checkpointing"):
                return "timm", name, functools.partial(module.set_grad_checkpointing, True)
        from torch.utils.checkpoint import checkpoint

        lists = self.repeated_blocks(root, "")

        def switch():
            for _, blocks in lists:
                for block in blocks:
                    block.forward = functools.partial(
                        checkpoint, block.forward, use_reentrant=False
                    )

        return "blocks" if lists else "", " ".join(name for name, _ in lists), switch

    # Lists of modules of one kind that have modules of their own: layers of a transformer, blocks
    # of a ResNet.
    def repeated_blocks(self, module, path):
        nn = self.torch.nn
        children = list(module.named_children())
        if (
            isinstance(module, (nn.ModuleList, nn.Sequential))
            and len(children) > 1
            and len({type(child) for _, child in children}) == 1
        ):
            if all(next(child.children(), None) is not None for _, child in children):
                return [(path, [child for _, child in children])]
        found = []
        for name, child in children:
            found += self.repeated_blocks(child, path + "." + name if path else name)
        return found

    # -- the optimizer

    def set_form(self, defaults):
        if "fused" in self.names and "fused" in defaults:
            defaults.update(fused=True, foreach=False)
        elif "foreach_off" in self.names and "foreach" in defaults:
            defaults["foreach"] = False

    def learn_optimizer(self, optimizer, source):
        self.made.add(optimizer)
        if self.facts["optimizer"]:
            return
        kind, first = type(optimizer), optimizer.defaults
        own = kind.__module__.startswith("torch.optim")
        form = (
            "fused"
            if first.get("fused")
            else "loop"
            if first.get("foreach") is False
            else "foreach"
            if "foreach" in first
            else "own"
        )
        can = (
            ["fused"]
            if own and "fused" in first
            else ["foreach_off"]
            if own and "foreach" in first
            else []
        )
        if own and kind.__name__ in ("Adam", "AdamW") and not first.get("amsgrad"):
            can.append("8bit")
        self.facts.update(
            optimizer=kind.__name__,
            optimizer_form=form,
            optimizer_can=" ".join(can),
            optimizer_at=source,
        )

    def step(self, optimizer, inner, args, kwargs):
        if not self.accumulating or id(optimizer) in self.skipped:
            if self.dealt.zero1:
                return step_of_own(self.torch, optimizer, lambda: inner(optimizer, *args, **kwargs))
            return inner(optimizer, *args, **kwargs)
        closure = kwargs.get("closure") or (args[0] if args and callable(args[0]) else None)
        out = None
        if closure is not None:
            with self.torch.enable_grad():
                out = closure()
        self.skipped.add(id(optimizer))
        return out

    # -- steps

    # True where the trace goes on although the steps that were wanted are over.
    def step_ends(self):
        tracer = self.tracer
        if tracer.steps == 1:
            self.facts["framework"] = self.framework()
        if tracer.steps == 2:
            count = self.backwards // max(1, len(tracer.first_round))
            self.facts["micro_batches"] = max(
                1, min(count, self.fetched) if self.fetched else count
            )
        self.fetched = self.backwards = 0
        tracer.counting = tracer.steps == 1
        if tracer.steps == tracer.wanted["STEPS"]:
            for key, value in self.facts.items():
                tracer.file.fact(key, value)
            tracer.file.mark(MICRO_BATCH)
            self.accumulating = True
            return True
        if tracer.steps > tracer.wanted["STEPS"]:
            tracer.file.fact("accumulated", int(self.accumulated))
        return False

    def framework(self):
        frame = sys._getframe(1)
        found = set()
        while frame is not None:
            parts = frame.f_code.co_filename.replace(os.sep, "/").split("/")
            if parts[-2:] == ["transformers", "trainer.py"]:
                found.add("trainer")
            for part, name in (
                ("lightning", "lightning"),
                ("pytorch_lightning", "lightning"),
                ("accelerate", "accelerate"),
            ):
                if part in parts[:-1]:
                    found.add(name)
            frame = frame.f_back
        return next((name for name in ("trainer", "lightning", "accelerate") if name in found), "")
