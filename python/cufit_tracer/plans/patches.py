# SPDX-License-Identifier: Apache-2.0
"""`cufit fit --plan`: tells what could be switched on in the program, adds one step over two
micro-batches to the trace, and for the traces of plans switches on what CUFIT_FIT_VARIANT names:
"plan,bf16,fused". src/fit/answer/plan_variants.h says what is told."""

import os

from .dealt import patch_dealing
from .eight_bit import eight_bit_step
from .variant import Variant


def patch_variants(tracer):
    names = [name for name in (tracer.wanted["VARIANT"] or "").split(",") if name]
    if not names:
        return
    torch = tracer.torch
    tracer.variant = Variant(tracer, [name for name in names if name != "plan"])
    watch_passes(tracer, tracer.variant)
    watch_steps(tracer.variant, torch.optim.Optimizer)
    watch_gradients(tracer, tracer.variant, torch.optim.Optimizer)
    patch_dealing(tracer, tracer.variant)
    if "8bit" in tracer.variant.names:
        torch.optim.Adam.step = torch.optim.AdamW.step = eight_bit_step(tracer)
    watch_batches(tracer.variant, torch.utils.data.dataloader._BaseDataLoaderIter)
    for name in ("bf16", "fp16"):
        if name in tracer.variant.names:  # what Accelerator and the Trainer read
            os.environ["ACCELERATE_MIXED_PRECISION"] = name


def watch_passes(tracer, variant):
    torch = tracer.torch
    from torch.nn.modules import module as hooks

    hooks.register_module_forward_pre_hook(lambda module, args: variant.before_forward(module))
    real_backward = torch.autograd.backward

    def backward(*args, **kwargs):
        variant.before_backward()
        return real_backward(*args, **kwargs)

    torch.autograd.backward = backward


def watch_steps(variant, Optimizer):
    import functools

    real_hook = Optimizer.profile_hook_step

    def profile_hook_step(function):
        inner = real_hook(function)

        @functools.wraps(inner)
        def step(self, *args, **kwargs):
            return variant.step(self, inner, args, kwargs)

        return step

    Optimizer.profile_hook_step = staticmethod(profile_hook_step)


# Between the micro-batches of one step gradients stay.
def watch_gradients(tracer, variant, Optimizer):
    Module = tracer.torch.nn.Module
    real_init, real_zero = Optimizer.__init__, Optimizer.zero_grad
    real_module_zero = Module.zero_grad

    def init(self, params, defaults, *args, **kwargs):
        variant.set_form(defaults)
        real_init(self, params, defaults, *args, **kwargs)
        variant.learn_optimizer(self, tracer.source())

    def zero_grad(self, *args, **kwargs):
        if id(self) not in variant.skipped:
            real_zero(self, *args, **kwargs)

    def module_zero_grad(self, *args, **kwargs):
        if not variant.skipped:
            real_module_zero(self, *args, **kwargs)

    Optimizer.__init__, Optimizer.zero_grad = init, zero_grad
    Module.zero_grad = module_zero_grad


def watch_batches(variant, loader):
    real_next = loader.__next__

    def following(self):
        variant.fetched += 1
        return real_next(self)

    loader.__next__ = following
