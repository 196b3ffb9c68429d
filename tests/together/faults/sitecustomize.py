# SPDX-License-Identifier: Apache-2.0
"""Breaks the all-reduce of rank 1 as CUFIT_FAULT says: what a broken link, driver or machine does
to NCCL, here done to torch.distributed itself, so the program under test is the shipped one."""

import builtins
import mmap
import os
import signal
import sys
import time

FAULT = os.environ.get("CUFIT_FAULT", "")
real_import = builtins.__import__


def hold_shared_file(name):
    """As NCCL has its segments: a file that is mapped, its descriptor closed."""
    descriptor = os.open("/dev/shm/" + name, os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(descriptor, 4096)
    held.append(mmap.mmap(descriptor, 4096))
    os.close(descriptor)


held = []


def broken(real, dist, calls=[]):  # noqa: B006
    def all_reduce(data, *args, **more):
        rank = dist.get_rank()
        calls.append(data.numel())
        kind, _, value = FAULT.partition(":")
        if rank == 1 and kind == "hang" and len(calls) > 1:
            print("host:1:2 [1] NCCL WARN first", flush=True)
            print(
                "host:1:2 [1] NCCL WARN Call to posix_fallocate failed: No space left", flush=True
            )
            if value:
                hold_shared_file(value)
            time.sleep(1000)
        if rank == 1 and kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if rank == 1 and kind == "raise":
            raise RuntimeError("NCCL error in: unhandled system error\nsecond line")
        done = real(data, *args, **more)
        if rank == 1 and kind == "wrong" and data.numel() > 2:
            data[data.numel() // 2] += 1
        if rank == 1 and kind == "wrong_small" and data.numel() == 2:
            data[1] += 1
        print("host:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM", flush=True)
        return done

    return all_reduce


def watching_import(name, *args, **more):
    module = real_import(name, *args, **more)
    dist = sys.modules.get("torch.distributed")
    if name == "torch.distributed" and hasattr(dist, "all_reduce"):
        builtins.__import__ = real_import
        dist.all_reduce = broken(dist.all_reduce, dist)
    return module


if FAULT:
    builtins.__import__ = watching_import
