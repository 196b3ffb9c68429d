# ---- tensors of a program's own class -------------------------------------------------------------------------------------------

# Data sets hand out tensors of classes of their own (MONAI's MetaTensor, torchvision's tv_tensors, fastai's TensorImage). Such a
# class and FakeTensor become one, and a tensor of it is what it would be on a GPU: another name for the same memory. A class that
# takes over what operators do (weights of 4 bit) is none of these.
def patch_subclasses(tracer):
    import inspect
    from torch.utils._python_dispatch import _disable_current_modes

    torch = tracer.torch
    FakeTensor = tracer.FakeTensor
    real = torch.Tensor.as_subclass
    made = {}
    plain = [inspect.getattr_static(kind, "__torch_dispatch__", None) for kind in (torch.Tensor, FakeTensor)]

    # What such a class does with attributes of its own (`self.__dict__ = ...`) leaves FakeTensor's alone.
    attributes = torch.Tensor.__dict__["__dict__"]

    def assign(self, value):
        fakes = {key: held for key, held in attributes.__get__(self).items() if key in self._cufit_keys}
        attributes.__set__(self, {**value, **fakes})

    # Between the two stands what such a class finds where it asks for torch's own way.
    class Between(FakeTensor):
        pass

    Between.__torch_function__ = inspect.getattr_static(torch.Tensor, "__torch_function__")

    def both(cls, like):
        if cls not in made:
            base = next(kind for kind in cls.__bases__ if issubclass(kind, torch.Tensor))
            made[cls] = type(cls.__name__, (cls, Between if base is torch.Tensor else both(base, like)), {
                "__module__": cls.__module__, "__dict__": property(attributes.__get__, assign), "_cufit_keys": frozenset(vars(like)), "_cufit_of": cls})
            made[cls].__torch_function__ = inspect.getattr_static(cls, "__torch_function__")  # its making switches torch's own off
        return made[cls]

    def as_subclass(self, cls):
        if not isinstance(self, FakeTensor):
            with _disable_current_modes():  # older torch asks the mode for another name of it, which then has a class already
                return real(self, getattr(cls, "_cufit_of", cls))
        if inspect.getattr_static(cls, "__torch_dispatch__", None) not in plain:
            return real(self, cls)
        with torch._C.DisableTorchFunctionSubclass():
            out = torch.ops.aten.alias.default(self)
        if cls is not torch.Tensor:
            out.__class__ = cls if issubclass(cls, FakeTensor) else both(cls, out)
        return out

    torch.Tensor.as_subclass = as_subclass


# Two tensors share memory if their addresses are equal. Those of tensors without contents are in no machine's memory, so that
# nothing can be written there, and as well aligned as those of a GPU.
def patch_addresses(tracer):
    torch = tracer.torch
    real, real_of = torch.UntypedStorage.data_ptr, torch.Tensor.data_ptr
    NOWHERE, ALIGNED = 1 << 62, 9

    def made_up(storage):
        return NOWHERE | (storage._cdata << ALIGNED) & (NOWHERE - 1)

    def of_storage(self):
        if self.device.type != "meta":
            return real(self)
        return made_up(self) if self.nbytes() else 0

    def of_tensor(self):
        if not isinstance(self, tracer.FakeTensor):
            return real_of(self)
        return made_up(self.untyped_storage()) + self.storage_offset() * self.element_size() if self.numel() else 0

    torch.UntypedStorage.data_ptr, torch.Tensor.data_ptr = of_storage, of_tensor


# Operators are seen by a mode, which every thread has for itself.
def patch_threads(tracer):
    import threading

    real = threading.Thread._bootstrap_inner

    def begin(self):
        mode = type(tracer.mode)()
        mode.__enter__()
        try:
            real(self)
        finally:
            mode.__exit__(None, None, None)

    threading.Thread._bootstrap_inner = begin


