# SPDX-License-Identifier: Apache-2.0
"""The device guard that autograd asks, where there is no GPU."""

import os

from ..user_files import OWN


# The autograd engine and the operators ask a device guard which GPU is current. Builds with CUDA
# have one, and torch 2.6 and later put another in its place that asks no driver where there is no
# GPU; builds for the CPU have none, so that one which counts no devices is registered first
# (no_accelerator.c).
def pretend_guard(torch):
    import ctypes

    CUDA = 1
    shim = os.path.join(OWN, "no_accelerator.so")
    registry = (ctypes.c_void_p * 2).in_dll(
        ctypes.CDLL(torch._C.__file__), "_ZN3c104impl26device_guard_impl_registryE"
    )
    own = hasattr(torch._C, "_ensureCUDADeviceGuardSet")
    if not own or not registry[CUDA]:
        name = "cufit_guard_never" if own else "cufit_guard_always"
        registry[CUDA] = ctypes.addressof(ctypes.c_void_p.in_dll(ctypes.CDLL(shim), name))
    if own:
        torch._C._ensureCUDADeviceGuardSet()
