# SPDX-License-Identifier: Apache-2.0
"""TorchScript, which takes functions for the operators that they stand for."""


# TorchScript takes it for the operator that it stands for.
def as_builtin(torch, function, name):
    try:
        torch.jit._builtins._register_builtin(function, name)
    except Exception:
        pass


# Its compiler of fused kernels needs the driver.
def leave_scripts_unfused(tracer):
    for name in ("_jit_set_texpr_fuser_enabled", "_jit_override_can_fuse_on_gpu"):
        try:
            getattr(tracer.torch._C, name)(False)
        except Exception:
            pass
