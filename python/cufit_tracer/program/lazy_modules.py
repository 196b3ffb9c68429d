# SPDX-License-Identifier: Apache-2.0
"""Modules that learn their sizes from the first batch."""


# A parameter without a shape cannot be fake, so that it is told where it goes and becomes fake as
# it gets its shape; whoever holds it then holds that.
def patch_lazy(tracer):
    torch = tracer.torch
    from contextlib import nullcontext
    from torch.nn.parameter import (
        Parameter,
        UninitializedBuffer,
        UninitializedParameter,
        UninitializedTensorMixin,
    )

    def placed(kind):
        real = kind.__new__

        def new(
            cls,
            requires_grad=kind is UninitializedParameter,
            device=None,
            dtype=None,
            *args,
            **kwargs,
        ):
            made = real(cls, requires_grad, "cpu", dtype, *args, **kwargs)
            made._cufit_place = torch.device(device or torch.get_default_device()), made.data.dtype
            return made

        kind.__new__ = new

    def materialize(self, shape, device=None, dtype=None):
        place = getattr(self, "_cufit_place", None) or (self.data.device, self.data.dtype)
        device, dtype = torch.device(device or place[0]), dtype or place[1]
        self.__dict__.pop("_cufit_place", None)
        if self.cls_to_become is not Parameter and device.type != "cuda":  # a buffer
            self.data = torch.empty(shape, device=device, dtype=dtype)
            self.__class__ = self.cls_to_become
            return
        with torch.no_grad(), nullcontext() if device.type == "cuda" else tracer.fake:
            value = torch.empty(shape, device=device, dtype=dtype)
        if self.cls_to_become is Parameter:
            value.requires_grad_(self.requires_grad)
            value._is_param = True
        torch.utils.swap_tensors(self, value)

    def copied(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, *self._cufit_place)
        return memo[id(self)]

    placed(UninitializedParameter)
    placed(UninitializedBuffer)
    UninitializedParameter.__deepcopy__ = copied
    UninitializedTensorMixin.materialize = materialize


# What `fn` of Module._apply makes of a tensor there.
def place_lazy(tracer, holder, fn):
    torch = tracer.torch
    device, dtype = getattr(holder, "_cufit_place", None) or (holder.data.device, holder.data.dtype)
    with torch.no_grad():
        value = fn(torch.empty(0, device=device, dtype=dtype))
    holder._cufit_place = value.device, value.dtype
