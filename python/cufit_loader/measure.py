# SPDX-License-Identifier: Apache-2.0
"""The last part: the loader alone, with each number of workers."""

import gc

from .alone import time_alone
from .watched import STEP_PART, WATCH_PART


def measure(probe, watch):
    probe.off = True
    loader = watch.kept or watch.loader()
    own = loader.num_workers
    counts = [own] + counts_to_try(probe, own)
    told = []
    probe.answer.put("loader", step=watch.step(), alone=told, trying=own)
    release(probe, watch, loader)
    each = max(probe.seconds * (1 - WATCH_PART - STEP_PART) / len(counts), 0.5)
    for workers in counts:
        probe.answer.put("loader", trying=workers)
        told.append(time_alone(probe.torch, probe.iterate, loader, workers, each))
        probe.answer.put("loader", alone=told)
    probe.answer.put("done", trying=None)


# All processes of a job have loaders at the same time, and share the CPUs.
def counts_to_try(probe, own):
    counts = sorted(set(probe.counts) - {own})
    if probe.cpus and probe.processes > 1:
        counts = [one for one in counts if one * probe.processes <= probe.cpus]
    return counts


# The program's own workers end.
def release(probe, watch, loader):
    watch.batch = None
    for one in list(probe.live):
        one.real = None
    for other in probe.watches:
        its = other.loader()
        if its is not None and hasattr(its, "_iterator"):
            its._iterator = None  # persistent ones
    if hasattr(loader, "_iterator"):
        loader._iterator = None
    gc.collect()
