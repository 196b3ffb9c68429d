# SPDX-License-Identifier: Apache-2.0
"""What is asked of a process: who it is, a workload to load, a block of calls to time."""

import ctypes
import gc
import platform
import time
import warnings

from .failure import Failure, first_line
from .workloads import build


class Runner:
    def __init__(self):
        self.torch = self.device = self.step = None
        self.capability = (0, 0)

    def hello(self, device):
        try:
            import torch
        except BaseException as error:
            raise Failure("no_torch", first_line(error)) from None
        self.torch = torch
        warnings.simplefilter("ignore")
        out = {
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "cuda": torch.version.cuda,
            "cudnn": cudnn_version(torch),
            "device": None,
        }
        if device == "cpu":
            self.device = torch.device("cpu")
            out["threads"] = torch.get_num_threads()
        else:
            out["device"] = self.take_gpu(int(device))
        return out

    def take_gpu(self, index):
        torch = self.torch
        if not torch.version.cuda:
            raise Failure("no_cuda", "torch %s" % torch.__version__)
        try:
            count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        except Exception as error:
            raise Failure("no_gpu", first_line(error)) from None
        if index >= count:
            raise Failure("no_gpu", "torch.cuda.device_count() is %d" % count)
        torch.cuda.set_device(index)
        torch.zeros(1, device="cuda")  # the context
        self.device = torch.device("cuda", index)
        self.capability = torch.cuda.get_device_capability(index)
        free, total = torch.cuda.mem_get_info(index)
        return {
            "name": torch.cuda.get_device_name(index),
            "capability": "%d.%d" % self.capability,
            "uuid": gpu_uuid(index),
            "memory_bytes": total,
        }

    # The workload before it is gone first: two would not fit.
    def load(self, workload, file, batch, precision):
        self.free()
        torch = self.torch
        self.check(precision)
        tf32 = precision == "tf32"
        if hasattr(torch, "set_float32_matmul_precision"):  # from 1.12 on
            torch.set_float32_matmul_precision("high" if tf32 else "highest")
        else:
            torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.backends.cudnn.allow_tf32 = tf32
        torch.manual_seed(0)
        built = build(torch, self.device, workload, file, batch, precision)
        self.step = built.step
        begin = seconds = 0.0
        for _ in range(2):  # the first compiles and loads kernels
            begin = time.perf_counter()
            self.step()
            self.wait()
            seconds = time.perf_counter() - begin
        return {
            "items": built.items,
            "unit": built.unit,
            "batch": built.batch,
            "shape": built.shape,
            "seconds": seconds,
        }

    def check(self, precision):
        if self.device.type == "cpu":
            if precision in ("tf32", "fp16"):
                raise Failure("precision", "%s on the CPU" % precision)
        elif precision in ("tf32", "bf16") and self.capability < (8, 0):
            raise Failure(
                "precision", "%s on compute capability %d.%d" % (precision, *self.capability)
            )

    def block(self, calls):
        cuda = self.device.type == "cuda"
        step = self.step
        if calls > 1:
            step()  # the process before this one left caches and clocks of its own
        self.wait()
        if cuda:
            self.torch.cuda.reset_peak_memory_stats(self.device)
        begun = time.time()
        begin = time.perf_counter()
        for _ in range(calls):
            step()
        self.wait()
        seconds = time.perf_counter() - begin
        return {
            "calls": calls,
            "seconds": seconds,
            "begin": begun,
            "end": begun + seconds,
            "reserved": self.torch.cuda.max_memory_reserved(self.device) if cuda else None,
        }

    def free(self):
        self.step = None
        gc.collect()
        if self.device is not None and self.device.type == "cuda":
            self.torch.cuda.empty_cache()
        return {}

    def wait(self):
        if self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)

    # (kind, why) of what a workload raised.
    def told(self, error):
        text = str(error)
        oom = isinstance(error, MemoryError) or "out of memory" in text or "can't allocate" in text
        if oom:
            error.__traceback__ = None  # holds the tensors
            try:
                self.free()
            except Exception as other:
                return "failed", first_line(other)
        return ("oom" if oom else "failed"), first_line(error)


def cudnn_version(torch):
    try:
        return torch.backends.cudnn.version()
    except Exception:
        return None


# As NVML writes it. torch tells it only from 2.3 on.
def gpu_uuid(index):
    try:
        library = ctypes.CDLL("libcuda.so.1")
        device, uuid = ctypes.c_int(), (ctypes.c_ubyte * 16)()
        if library.cuDeviceGet(ctypes.byref(device), index) != 0:
            return None
        # _v2 (driver 470) tells an instance's own.
        ask = getattr(library, "cuDeviceGetUuid_v2", None) or library.cuDeviceGetUuid
        if ask(ctypes.byref(uuid), device) != 0:
            return None
    except (OSError, AttributeError):
        return None
    text = bytes(uuid).hex()
    parts = (text[:8], text[8:12], text[12:16], text[16:20], text[20:])
    return "-".join(parts)
