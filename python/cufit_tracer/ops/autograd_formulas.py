# SPDX-License-Identifier: Apache-2.0
"""Formulas of autograd that PyTorch carries out otherwise while somebody traces."""

import collections
import collections.abc


# Formulas that write into a value of their own making, though never while somebody traces
# (areAnyTensorSubclassLike in torch/csrc/autograd/FunctionsManual.cpp): by operator, the nodes in
# which its first operand is such a value. Found by running the samples of torch.testing's op_db
# both ways, with autograd's profiler watching the one and a dispatch mode the other.
CHOICES = ("Max", "Min", "Median", "Nanmedian", "Kthvalue", "Mode", "Sort", "Topk")


WRITING = {
    "scatter": CHOICES,
    "scatter_add": ("Gather", "Cummax", "Cummin"),
    "index_add": ("IndexSelect",),
    "index_put": ("Index",),
    "masked_scatter": ("MaskedSelect",),
    "put": ("Take",),
    "index_fill": ("Trace",),
    "masked_fill": ("Atan2",),
}


LOGITS = "BinaryCrossEntropyWithLogitsBackward"


class Formulas:
    def __init__(self, tracer):
        torch = self.torch = tracer.torch
        aten = torch.ops.aten
        self.node = getattr(torch._C, "_current_autograd_node", lambda: None)
        self.writing = {
            getattr(packet, overload): tuple(name + "Backward" for name in nodes)
            for packet, nodes in ((getattr(aten, name), nodes) for name, nodes in WRITING.items())
            for overload in packet.overloads()
        }
        self.of_logits = {
            aten.sub.Tensor: True,
            aten.mul.Tensor: True,
            aten.sigmoid.default: False,
            aten.add.Tensor: False,
            aten.add.Scalar: False,
        }
        self.made = collections.deque(
            maxlen=2
        )  # the storages of what the formula of LOGITS has made last, and writes into
        self.patch_products()

    # Whether the operator writes into its first operand.
    def in_place(self, func, args):
        if func in self.writing:
            return self.within(self.writing[func])
        if self.of_logits.get(func):
            return (
                self.within(LOGITS)
                and not self.torch.is_grad_enabled()
                and args[0].untyped_storage()._cdata in self.made
            )
        return False

    def saw(self, func, out):
        if (
            self.of_logits.get(func) is False
            and isinstance(out, self.torch.Tensor)
            and self.within(LOGITS)
        ):
            self.made.append(out.untyped_storage()._cdata)

    def of_a_loss(self):
        return self.within(LOGITS)

    # Nodes of PyTorch's own end in a number, those of a program's functions in none.
    def within(self, names):
        node = self.node()
        name = node.name() if node is not None else ""
        return name.startswith(names) and name[-1:].isdigit()

    # Of products along a dimension, of which no factor is taken for zero; the formula for a tracer
    # takes a step for each factor.
    def patch_products(self):
        torch = self.torch

        def backward(grad, factors, dim, products):
            if factors.numel() <= 1 or factors.shape[dim] == 1:
                return grad
            scaled = products.conj() * grad
            zeros = factors == 0
            zeros.any()
            turned = scaled.flip(dim)
            summed = turned.cumsum(dim)
            back = summed.flip(dim)
            del turned, summed
            return back.div(factors.conj())

        try:
            self.library = torch.library.Library("aten", "IMPL")
            self.library.impl("cumprod_backward", backward, "AutogradCUDA")
        except Exception:  # a torch without it
            self.library = None
