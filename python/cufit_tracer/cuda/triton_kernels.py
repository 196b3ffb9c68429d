# SPDX-License-Identifier: Apache-2.0
"""Kernels that a program launches by itself."""

import sys

from cufit_import_hook import when_imported


def tell_not_run(tracer, kind, name):
    said = "the %s kernel %s was not run: what it computes has no values" % (kind, name)
    tracer.file.note("assumed", said, tracer.source())


# A kernel written in Triton writes where it is told to and allocates nothing: it is not compiled,
# and does nothing.
def patch_triton(tracer):
    def active(triton):
        from triton.backends.compiler import GPUTarget

        triton.runtime.driver.set_active(
            Driver(tracer, GPUTarget("cuda", tracer.capability[0] * 10 + tracer.capability[1], 32))
        )

    def launched(module):
        triton = sys.modules["triton"]
        active(triton)
        kinds = {triton.runtime.jit.JITFunction}
        for name in ("Autotuner", "Heuristics"):
            kinds.add(getattr(module, name, None))

        def run(self, *args, **kwargs):
            name = getattr(getattr(self, "fn", self), "__name__", "")
            tell_not_run(tracer, "Triton", name)

        for kind in kinds - {None}:
            kind.run = run

    when_imported("triton.runtime.autotuner", launched)
    if hasattr(tracer.torch.cuda, "_compile_kernel"):
        tracer.torch.cuda._compile_kernel = lambda source, name, *args, **kwargs: CudaKernel(
            tracer, name
        )


class CudaKernel:
    """One in CUDA C++, which a GPU's driver would load."""

    def __init__(self, tracer, name):
        self.tracer, self.name = tracer, name

    def __call__(self, *args, **kwargs):
        tell_not_run(self.tracer, "CUDA", self.name)

    def set_shared_memory_config(self, size):
        return None


class Driver:
    """What inductor asks of triton's driver."""

    def __init__(self, tracer, target):
        self.tracer, self.target, self.utils = tracer, target, self

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_active_torch_device(self):
        return self.tracer.torch.device("cuda", 0)

    def get_device_interface(self):
        return self.tracer.torch.cuda

    def get_device_properties(self, device=0):
        card = self.tracer.torch.cuda.get_device_properties(0)
        return {
            "max_shared_mem": card.shared_memory_per_block_optin,
            "max_num_regs": card.regs_per_multiprocessor,
            "warpSize": card.warp_size,
            "multiprocessor_count": card.multi_processor_count,
            "sm_clock_rate": 1980000,
            "mem_clock_rate": 2619000,
            "mem_bus_width": 5120,
        }
