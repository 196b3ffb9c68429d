# SPDX-License-Identifier: Apache-2.0
"""Optimizers and backward passes: phases, categories, where a step ends."""

import time

from ..event_file import BACKWARD, FORWARD, GRADIENT, OPTIMIZER, OPTIMIZER_STATE, PARAMETER
from ..ops.script import as_builtin


def patch_optimizers(tracer):
    torch = tracer.torch
    import torch.optim.optimizer as optimizer

    optimizer._foreach_supported_types.append(tracer.FakeTensor)
    optimizer._get_foreach_kernels_supported_devices = lambda: ["cuda"]
    patch_backward(tracer)
    real_init = optimizer.Optimizer.__init__

    def init(self, *args, **kwargs):
        tracer.optimizers += 1
        tracer.made.add(self)
        real_init(self, *args, **kwargs)

    optimizer.Optimizer.__init__ = init
    optimizer.register_optimizer_step_pre_hook(before_step(tracer))
    optimizer.register_optimizer_step_post_hook(after_step(tracer))
    # Whether gradients overflow is not known without values: they do not.
    torch.amp.GradScaler._maybe_opt_step = lambda self, optimizer, state, *args, **kwargs: (
        optimizer.step(*args, **kwargs)
    )


def patch_backward(tracer):
    torch = tracer.torch
    real_backward, real_grad = torch.autograd.backward, torch.autograd.grad

    def backward(*args, **kwargs):
        tracer.sums.learn()
        before, tracer.phase = tracer.phase, BACKWARD
        try:
            return real_backward(*args, **kwargs)
        finally:
            tracer.phase = before
            if tracer.by_hand is None and not tracer.made:
                tracer.by_hand = False

    def grad(*args, **kwargs):
        tracer.sums.learn()
        before = tracer.phase
        if before == FORWARD and not tracer.compiling:
            tracer.phase = BACKWARD
        try:
            return real_grad(*args, **kwargs)
        finally:
            tracer.phase = before
            # Autograd's thread lets go of the last gradient when it gets Python's lock, else at any
            # time.
            time.sleep(0.0002)

    as_builtin(torch, grad, "aten::grad")
    torch.autograd.backward, torch.autograd.grad = backward, grad


def parameters_of(optimizer):
    for group in optimizer.param_groups:
        yield from group["params"]


def before_step(tracer):
    def tell_gradient(parameter):
        if parameter.grad is not None:
            tracer.categorise(parameter.grad, GRADIENT)

    def step_before(self, args, kwargs):
        for parameter in parameters_of(self):
            tracer.categorise(parameter.data, PARAMETER)
            tell_gradient(parameter)
        before, tracer.phase = tracer.phase, OPTIMIZER
        closure = kwargs.get("closure") or (args[1] if len(args) > 1 else None)
        if not callable(closure):
            return None

        # Lightning's forward and backward run within the optimizer's step.
        def inside():
            tracer.phase = before
            try:
                return closure()
            finally:
                tracer.phase = OPTIMIZER
                for parameter in parameters_of(self):
                    tell_gradient(parameter)

        if "closure" in kwargs:
            return args, dict(kwargs, closure=inside)
        return (args[0], inside) + tuple(args[2:]), kwargs

    return step_before


def after_step(tracer):
    torch = tracer.torch

    def step_after(self, args, kwargs):
        for state in self.state.values():
            for value in state.values() if isinstance(state, dict) else ():
                if isinstance(value, torch.Tensor):
                    tracer.categorise(value, OPTIMIZER_STATE)
        tracer.phase = FORWARD
        tracer.optimizer_steps(id(self))

    return step_after
