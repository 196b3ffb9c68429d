# SPDX-License-Identifier: Apache-2.0
"""Older ways to say `cuda`: torch.cuda.FloatTensor and its like, as types of `x.type(...)` and
isinstance, as functions that make tensors, and as the default."""

from ..ops.script import as_builtin

TYPES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
}


def kind_class(torch):
    class Kind:
        is_cuda, layout = True, torch.strided

        def __init__(self, name, dtype):
            self.__name__, self.dtype = name, dtype

        def __call__(self, *given):
            if len(given) == 1 and not isinstance(given[0], (int, torch.Size)):
                return torch.as_tensor(given[0], dtype=self.dtype).to("cuda")
            return torch.empty(*given or (0,), dtype=self.dtype, device="cuda")

        def __instancecheck__(self, value):
            return isinstance(value, torch.Tensor) and value.is_cuda and value.dtype == self.dtype

        def __repr__(self):
            return "<class 'torch.cuda.%s'>" % self.__name__

    return Kind


def patch_older_names(tracer):
    torch = tracer.torch
    Kind, kinds = kind_class(torch), {}
    for name, dtype in TYPES.items():
        kind = Kind(name + "Tensor", getattr(torch, dtype))
        kinds["torch.cuda.%sTensor" % name] = kind
        setattr(torch.cuda, name + "Tensor", kind)
    real_type, real_default = torch.Tensor.type, torch.set_default_tensor_type

    def type_of(self, dtype=None, non_blocking=False, **kwargs):
        wanted = kinds.get(dtype, dtype) if isinstance(dtype, str) else dtype
        if isinstance(wanted, Kind):
            return self.to("cuda", wanted.dtype)
        return (
            real_type(self, **kwargs)
            if dtype is None
            else real_type(self, dtype, non_blocking, **kwargs)
        )

    def set_default(kind):
        wanted = kinds.get(kind, kind) if isinstance(kind, str) else kind
        if not isinstance(wanted, Kind):
            torch.set_default_device(None)
            return real_default(kind)
        torch.set_default_dtype(wanted.dtype)
        torch.set_default_device("cuda")

    torch.Tensor.type, torch.set_default_tensor_type = type_of, set_default
    patch_lists(tracer)


# A list of single values on the GPU is read, one after the other.
def patch_lists(tracer):
    torch = tracer.torch

    def read(value):
        if isinstance(value, (list, tuple)):
            return [read(item) for item in value]
        single = isinstance(value, tracer.FakeTensor) and value.numel() == 1
        return value.item() if single else value

    def values(data):
        lists = (
            isinstance(data, (list, tuple))
            and len(data) <= 4096
            and any(isinstance(item, (list, tuple, tracer.FakeTensor)) for item in data)
        )
        return read(data) if lists else data

    # A thread keeps for itself where values lie at first; backward passes have one of their own.
    def make(data, *args, _real=torch.tensor, pin_memory=False, **kwargs):
        torch._C._set_only_lift_cpu_tensors(True)
        return _real(values(data), *args, **kwargs)

    def make_as(data, *args, _real=torch.as_tensor, **kwargs):
        torch._C._set_only_lift_cpu_tensors(True)
        return _real(values(data), *args, **kwargs)

    as_builtin(torch, make, "aten::tensor")
    as_builtin(torch, make_as, "aten::as_tensor")
    torch.tensor, torch.as_tensor = make, make_as
