# SPDX-License-Identifier: Apache-2.0
"""What PyTorch does in place only where nobody traces."""

import sys

from .script import as_builtin
from ..tensors import dense


# Where several gradients of one value meet, autograd adds into the first one if nobody else holds
# it (torch/csrc/autograd/input_buffer.cpp), but never while somebody traces. So which it would have
# been is read from how many hold it, compared with a case in which it is known that nobody else
# does.
class GradientSums:
    # Nodes whose own formulas add.
    ADDING = ("VarMeanBackward", "StdMeanBackward")

    def __init__(self, tracer):
        self.torch = tracer.torch
        self.FakeTensor = tracer.FakeTensor
        self.alone = None  # how many hold a sum that nobody else holds
        graph = sys.modules.get("torch.autograd.graph")
        engine = getattr(graph, "_engine_run_backward", None)
        self.engine = engine and engine.__code__
        self.learning = False

    # Before the first backward pass, when autograd's threads are about to start anyway.
    def learn(self):
        torch = self.torch
        if self.alone is not None:
            return
        self.alone = ()
        if not hasattr(torch.Tensor, "_use_count"):  # an older torch: all sums are new
            return
        self.learning = True
        try:
            with torch.enable_grad(), torch.autocast("cuda", enabled=False):
                x = torch.empty(2, device="cuda", requires_grad=True)
                y = x * 1
                (y.sin() + y.cos()).sum().backward()
        except Exception:
            self.alone = ()
        finally:
            self.learning = False

    # Whether autograd called the operator, in a thread of its own or in the program's, and not the
    # program. The frames between are this one, in_place, Operators.in_place and run, the mode's;
    # where something is compiled also those that keep dynamo out of it.
    def by_engine(self):
        try:
            frame = sys._getframe(5)
        except ValueError:  # nothing of Python's
            return True
        while frame is not None and frame.f_code.co_filename.endswith("_dynamo/eval_frame.py"):
            frame = frame.f_back
        return frame is None or frame.f_code is self.engine

    # Always called from the same place (Operators.run), so that the counts have one meaning.
    def in_place(self, args, kwargs):
        if (
            len(args) != 2
            or kwargs
            or self.alone == ()
            and not self.learning
            or self.torch.is_grad_enabled()
        ):
            return False
        into, more = args
        if (
            not isinstance(into, self.FakeTensor)
            or not isinstance(more, self.FakeTensor)
            or into.shape != more.shape
            or into.layout is not self.torch.strided
        ):
            return False
        holders = (
            into._use_count(),
            self.torch._C._storage_Use_Count(into.untyped_storage()._cdata),
            self.by_engine(),
        )
        if self.learning:
            self.alone = holders
            return False
        node = self.torch._C._current_autograd_node()
        return (
            holders == self.alone
            and dense(into)
            and not (node is not None and node.name().startswith(self.ADDING))
        )


# A layer whose input is not in one piece multiplies, then adds the bias in place
# (aten/src/ATen/native/Linear.cpp), but not while somebody traces.
def patch_linear(tracer):
    torch = tracer.torch
    real = torch.nn.functional.linear

    def linear(input, weight, bias=None):
        if bias is None or tracer.compiling:
            return real(input, weight, bias)
        before, tracer.adds_bias = tracer.adds_bias, True
        try:
            return real(input, weight, bias)
        finally:
            tracer.adds_bias = before

    tracer.linear = linear
    as_builtin(torch, linear, "aten::linear")
    torch.nn.functional.linear = linear
    torch._C._nn.linear = linear
