# SPDX-License-Identifier: Apache-2.0
"""Checks of values that nobody has, and inference mode."""


# A distribution raises where its parameters or samples are not what they have to be: they are.
def patch_distributions(tracer):
    Distribution = tracer.torch.distributions.Distribution

    def checked(real):
        def run(*args, **kwargs):
            before, tracer.valid = tracer.valid, True
            try:
                return real(*args, **kwargs)
            finally:
                tracer.valid = before

        return run

    for name in ("__init__", "_validate_sample"):
        setattr(Distribution, name, checked(getattr(Distribution, name)))


# In inference mode a dispatch mode is given operators that are made of others as they are.
# Gradients are all it is about here.
def patch_inference_mode(tracer):
    torch = tracer.torch

    def enter(self):
        self._cufit_before = torch.is_grad_enabled()
        torch._C._set_grad_enabled(not self.mode)

    def leave(self, *error):
        torch._C._set_grad_enabled(self._cufit_before)

    torch.inference_mode.__enter__, torch.inference_mode.__exit__ = enter, leave
