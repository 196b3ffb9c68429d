# SPDX-License-Identifier: Apache-2.0
"""A mode of the program's own over the tracer's, while the tracer looks away for torch.compile."""

import sys

import torch
from cufit_tracer.compile.compiler import Compiler
from torch.utils import _python_dispatch as modes


class Over(modes.TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def names():
    return [type(mode).__name__ for mode in modes._get_current_dispatch_mode_stack()]


compiler = Compiler(sys._cufit_tracers[0])
with Over():
    with compiler.off():
        print(*names())
        with compiler.on():
            print(*names())
    print(*names())
print(*names())
torch.zeros(8, device="cuda")
