# SPDX-License-Identifier: Apache-2.0
"""The program runs up to its training loop. There it is watched for some batches, then given one
batch again and again, then its loader is iterated alone; then the process ends, nothing saved."""

import functools
import gc
import os
import sys
import time

from cufit_import_hook import on_import

from .alone import time_alone
from .batches import bytes_of, renewed

LEAST_BATCHES, MOST_BATCHES = 8, 300  # watched
LEAST_STEPS, MOST_STEPS, WARM_STEPS = 5, 500, 2  # on one batch
STEPLESS_BATCHES = 30  # of a loop without an optimizer
WATCH_PART, STEP_PART = 0.25, 0.2  # of all seconds


class Probe:
    def __init__(self, answer, seconds, counts):
        self.answer, self.seconds, self.counts = answer, seconds, counts
        self.places = {}  # of loaders by id: where the program made them
        self.iterate = self.torch = self.current = None
        self.steps = 0
        self.pid = os.getpid()
        self.off = False

    def wait(self):
        on_import("torch", self.imported)

    def imported(self, torch):
        import torch.utils.data

        self.torch = torch
        loader = torch.utils.data.DataLoader
        self.iterate, make, probe = loader.__iter__, loader.__init__, self

        @functools.wraps(make)
        def __init__(itself, *args, **kwargs):
            make(itself, *args, **kwargs)
            probe.places[id(itself)] = user_line()

        @functools.wraps(self.iterate)
        def __iter__(itself):
            real = probe.iterate(itself)
            return real if probe.is_off() else Watched(probe, itself, real)

        loader.__init__, loader.__iter__ = __init__, __iter__
        self.wrap(torch.optim.Optimizer)

    # The step of each class passes through profile_hook_step once, before its first optimizer.
    def wrap(self, optimizer):
        hook, probe = optimizer.profile_hook_step, self

        def profile_hook_step(function):
            @functools.wraps(function)
            def step(itself, *args, **kwargs):
                if probe.current is not None:
                    probe.current.steps += 1
                return function(itself, *args, **kwargs)

            return hook(step)

        optimizer.profile_hook_step = staticmethod(profile_hook_step)

    # Also in the workers, which have forked, and in threads of other processes.
    def is_off(self):
        return self.off or os.getpid() != self.pid

    def wait_for_device(self):
        if self.torch.cuda.is_initialized():
            self.torch.cuda.synchronize()


class Watched:
    """An iterator of one of the program's loaders."""

    def __init__(self, probe, loader, real):
        self.probe, self.loader, self.real = probe, loader, real
        self.steps, self.batches = 0, 0
        self.waited = self.worked = 0.0
        self.begun = time.perf_counter()
        self.given = None  # when the last batch was
        self.batch = None
        self.alone = None  # [steps so far, when they began]

    def __iter__(self):
        return self

    def __len__(self):
        return len(self.loader)

    def __getattr__(self, name):
        return getattr(self.real, name)

    def __next__(self):
        if self.probe.is_off():
            return next(self.real)
        self.probe.current = self
        if self.alone is None and not self.is_seen():
            return self.watch()
        return self.again()

    def watch(self):
        asked = time.perf_counter()
        if self.given is not None and self.batches > 1:
            self.worked += asked - self.given
        try:
            batch = next(self.real)
        except StopIteration:
            if self.steps >= LEAST_STEPS and self.batch is not None:
                return self.again()  # an epoch that is short
            raise
        self.given = time.perf_counter()
        self.batches += 1
        if self.batches > 2:  # the first ones wait for workers and kernels
            self.waited += self.given - asked
        self.batch = batch
        return renewed(batch)

    # Enough was watched, and it is a training loop as far as that can be told.
    def is_seen(self):
        seconds = time.perf_counter() - self.begun
        if self.steps == 0:
            part = self.probe.seconds * 2 * WATCH_PART
            return self.batches >= STEPLESS_BATCHES and seconds > part
        enough = self.batches >= LEAST_BATCHES and seconds > self.probe.seconds * WATCH_PART
        return (enough or self.batches >= MOST_BATCHES) and self.steps > 1

    # One batch again and again: nothing is loaded.
    def again(self):
        probe = self.probe
        if self.alone is None:
            if not probe.answer.claim():
                probe.off = True
                return next(self.real)
            self.alone = [-WARM_STEPS, 0.0]
            self.told()
        self.alone[0] += 1
        if self.alone[0] == 0:
            probe.wait_for_device()
            self.alone[1] = time.perf_counter()
        steps, begin = self.alone
        seconds = time.perf_counter() - begin
        if steps >= LEAST_STEPS and (seconds > probe.seconds * STEP_PART or steps >= MOST_STEPS):
            probe.wait_for_device()
            self.finish(steps, (time.perf_counter() - begin) / steps)
        return renewed(self.batch)

    def told(self):
        probe, loader, torch = self.probe, self.loader, self.probe.torch
        try:
            batches = len(loader)
        except TypeError:  # of an iterable dataset
            batches = None
        probe.answer.put(
            "step",
            torch=str(torch.__version__),
            cuda=bool(torch.cuda.is_initialized()),
            optimizer_steps=self.steps,
            loader={
                "place": probe.places.get(id(loader)),
                "dataset": type(loader.dataset).__name__,
                "batches": batches,
                "batch_size": getattr(loader.batch_sampler, "batch_size", loader.batch_size),
                "batch_bytes": bytes_of(torch, self.batch),
                "num_workers": loader.num_workers,
                "pin_memory": bool(loader.pin_memory),
                "prefetch_factor": loader.prefetch_factor,
                "persistent_workers": bool(loader.persistent_workers),
            },
            watched={
                "batches": max(self.batches - 2, 0),
                "wait_seconds": self.waited,
                "work_seconds": self.worked,
            },
        )

    # Does not return.
    def finish(self, steps, seconds):
        probe = self.probe
        probe.off = True
        step = {"steps": steps, "seconds": seconds}
        probe.answer.put("loader", step=step, alone=[])
        own = self.loader.num_workers
        self.real = self.batch = None
        if hasattr(self.loader, "_iterator"):
            self.loader._iterator = None  # its persistent workers
        gc.collect()
        counts = [own] + sorted(set(probe.counts) - {own})
        each = max(probe.seconds * (1 - WATCH_PART - STEP_PART) / len(counts), 0.5)
        told = []
        for workers in counts:
            told.append(time_alone(probe.torch, probe.iterate, self.loader, workers, each))
            probe.answer.put("loader", alone=told)
        probe.answer.put("done")
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        # Neither atexit nor finally: they may save a checkpoint.
        os._exit(0)


# "train.py:57": the nearest line that is neither torch's nor cufit's nor a library's.
def user_line():
    frame, first = sys._getframe(1), None
    while frame is not None:
        file = frame.f_code.co_filename
        here = os.path.dirname(file) == "" or "cufit_loader" in file
        if not here and "site-packages" not in file and not file.startswith("<"):
            return "%s:%d" % (file, frame.f_lineno)
        first = first or file
        frame = frame.f_back
    return None
