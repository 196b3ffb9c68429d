# SPDX-License-Identifier: Apache-2.0
"""one_hot, whose way for tracers takes more memory."""

from .script import as_builtin


# Not as for tracers, whose way compares with all classes at once (aten/src/ATen/native/Onehot.cpp).
def patch_one_hot(tracer):
    torch = tracer.torch
    real = torch.nn.functional.one_hot

    def one_hot(*args, **kwargs):
        tensor = args[0] if args else kwargs.get("input", kwargs.get("self"))
        classes = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
        if (
            tracer.compiling
            or type(classes) is not int
            or classes <= 0
            or getattr(tensor, "fake_mode", None) is not tracer.fake
            or tensor.dtype != torch.int64
        ):
            return real(*args, **kwargs)
        out = torch.zeros((*tensor.shape, classes), dtype=torch.int64, device="cuda")
        return out.scatter_(-1, tensor.unsqueeze(-1), 1)

    as_builtin(torch, one_hot, "aten::one_hot")
    torch.nn.functional.one_hot = one_hot
    torch._C._nn.one_hot = one_hot
