# SPDX-License-Identifier: Apache-2.0
"""Tensors of a program's own class."""


# Stands between FakeTensor and a class: what that finds where it asks for torch's own way.
def between(torch, FakeTensor):
    import inspect

    class Between(FakeTensor):
        pass

    Between.__torch_function__ = inspect.getattr_static(torch.Tensor, "__torch_function__")
    return Between


# Data sets hand out tensors of classes of their own (MONAI's MetaTensor, torchvision's tv_tensors,
# fastai's TensorImage). Such a class and FakeTensor become one, and a tensor of it is what it would
# be on a GPU: another name for the same memory. A class that takes over what operators do (weights
# of 4 bit) is none of these.
def patch_subclasses(tracer):
    import inspect
    from torch.utils._python_dispatch import _disable_current_modes

    torch = tracer.torch
    FakeTensor = tracer.FakeTensor
    real = torch.Tensor.as_subclass
    made = {}
    Between = between(torch, FakeTensor)
    plain = [
        inspect.getattr_static(kind, "__torch_dispatch__", None)
        for kind in (torch.Tensor, FakeTensor)
    ]

    # What such a class does with attributes of its own (`self.__dict__ = ...`) leaves FakeTensor's
    # alone.
    attributes = torch.Tensor.__dict__["__dict__"]

    def assign(self, value):
        fakes = {
            key: held for key, held in attributes.__get__(self).items() if key in self._cufit_keys
        }
        attributes.__set__(self, {**value, **fakes})

    def both(cls, like):
        if cls not in made:
            base = next(kind for kind in cls.__bases__ if issubclass(kind, torch.Tensor))
            bases = cls, Between if base is torch.Tensor else both(base, like)
            space = {"__module__": cls.__module__, "_cufit_of": cls}
            space["__dict__"] = property(attributes.__get__, assign)
            space["_cufit_keys"] = frozenset(vars(like))
            made[cls] = type(cls.__name__, bases, space)
            # Its making switches torch's own off.
            made[cls].__torch_function__ = inspect.getattr_static(cls, "__torch_function__")
        return made[cls]

    def as_subclass(self, cls):
        if not isinstance(self, FakeTensor):
            # Older torch asks the mode for another name of it, which then has a class already.
            with _disable_current_modes():
                return real(self, getattr(cls, "_cufit_of", cls))
        if inspect.getattr_static(cls, "__torch_dispatch__", None) not in plain:
            return real(self, cls)
        with torch._C.DisableTorchFunctionSubclass():
            out = torch.ops.aten.alias.default(self)
        if cls is not torch.Tensor:
            out.__class__ = cls if issubclass(cls, FakeTensor) else both(cls, out)
        return out

    torch.Tensor.as_subclass = as_subclass
