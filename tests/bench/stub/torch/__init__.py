# SPDX-License-Identifier: Apache-2.0
"""Stands for a torch where only its being there matters: cases of tests/cli and tests/schemas."""
import os
import types

__version__ = "2.8.0+cpu"
version = types.SimpleNamespace(cuda=None)
backends = types.SimpleNamespace(
    cudnn=types.SimpleNamespace(version=lambda: None, allow_tf32=False),
    cuda=types.SimpleNamespace(matmul=types.SimpleNamespace(allow_tf32=True)),
)
cuda = types.SimpleNamespace(is_initialized=lambda: False)


class Tensor:
    pass


class Optimizer:
    def __init__(self):
        kind = type(self)
        if hasattr(kind, "profile_hook_step") and not getattr(kind.step, "hooked", False):
            kind.step = kind.profile_hook_step(kind.step)
            kind.step.hooked = True

    @staticmethod
    def profile_hook_step(function):
        return lambda *args: function(*args)


if os.environ.get("STUB_TORCH") == "1.13":
    del Optimizer.profile_hook_step


optim = types.SimpleNamespace(Optimizer=Optimizer)


def device(kind):
    return types.SimpleNamespace(type=kind)


def get_num_threads():
    return 1


def set_float32_matmul_precision(name):
    pass


if os.environ.get("STUB_TORCH") == "1.11":
    del set_float32_matmul_precision


def manual_seed(seed):
    pass


def save(model, file):
    if hasattr(file, "write"):
        file.write(str(model))
    else:
        with open(file, "w") as made:
            made.write(str(model))
