# SPDX-License-Identifier: Apache-2.0
"""A loader of the program while the program runs, over as many iterators as it makes."""

import sys
import time
import weakref

from .batches import bytes_of, is_on_device, renewed

LEAST_BATCHES, MOST_BATCHES = 8, 300  # watched
LEAST_STEPS, MOST_STEPS, WARM_STEPS = 5, 500, 2  # on one batch
STEPLESS_BATCHES = 30  # of a loop without an optimizer
WATCH_PART, STEP_PART = 0.25, 0.2  # of all seconds


class Watch:
    """What is known of one loader. An epoch may be short, or be left by `break`: the next one goes
    on where it ended."""

    def __init__(self, loader, kind):
        self.loader, self.kind = weakref.ref(loader), kind
        self.begun = time.perf_counter()
        self.batches = self.counted = 0  # counted: those of which the times are kept
        self.steps = 0  # of an optimizer
        self.waited = self.worked = 0.0
        self.batch = None
        self.warm, self.alone_steps, self.alone_seconds = WARM_STEPS, 0, 0.0
        self.kept = None  # the loader, of a loop that was left

    @staticmethod
    def kind_of(loader, place):
        return place, type(loader.dataset).__name__, length_of(loader), batch_size_of(loader)

    def place(self):
        return self.kind[0]

    # Enough was watched, and it is a training loop as far as that can be told.
    def is_seen(self, probe):
        seconds = time.perf_counter() - self.begun
        if self.steps == 0:
            if probe.stepped:
                return False
            return self.batches >= STEPLESS_BATCHES and seconds > probe.seconds * 2 * WATCH_PART
        enough = self.batches >= LEAST_BATCHES and seconds > probe.seconds * WATCH_PART
        return (enough or self.batches >= MOST_BATCHES) and self.steps > 1 and probe.feeds(self)

    def step(self):
        return {"steps": self.alone_steps, "seconds": self.alone_seconds / self.alone_steps}

    def told(self, probe, others):
        loader, torch = self.loader(), probe.torch
        return {
            "torch": str(torch.__version__),
            "cuda": bool(torch.cuda.is_initialized()),
            "optimizer_steps": self.steps,
            "processes": probe.processes,
            "other_loaders": others[:8],
            "loader": {
                "place": self.place(),
                "dataset": type(loader.dataset).__name__,
                "iterable": isinstance(loader.dataset, torch.utils.data.IterableDataset),
                "batches": length_of(loader),
                "batch_size": batch_size_of(loader),
                "batch_bytes": bytes_of(torch, self.batch),
                "batch_on_device": is_on_device(torch, self.batch),
                "num_workers": loader.num_workers,
                "pin_memory": bool(loader.pin_memory),
                "prefetch_factor": loader.prefetch_factor,
                "persistent_workers": bool(loader.persistent_workers),
            },
            "watched": {
                "batches": self.counted,
                "wait_seconds": self.waited,
                "work_seconds": self.worked,
            },
        }


class Watched:
    """An iterator of one of the program's loaders."""

    def __init__(self, probe, watch, real):
        self.probe, self.watch, self.real = probe, watch, real
        self.loader = watch.loader()  # lives as long as this one
        self.batches = 0
        self.given = None  # when the last batch was
        self.fresh = False  # no optimizer has stepped since
        self.since = None  # when the timed steps of this iterator began
        self.timed = 0
        probe.live.add(self)

    def __iter__(self):
        return self

    def __len__(self):
        return len(self.loader)

    def __getattr__(self, name):
        if name in ("probe", "watch", "real"):  # not made to its end
            raise AttributeError(name)
        return getattr(self.real, name)

    def __next__(self):
        probe, watch = self.probe, self.watch
        if probe.is_off():
            return next(self.real)
        if not probe.repeats() and probe.leads and watch.is_seen(probe):
            self.keep_work()
            probe.begin(watch)
        return self.give()

    def give(self):
        probe, watch = self.probe, self.watch
        if not probe.repeats():
            return self.next_batch()
        if watch is probe.primary:
            self.time_step()
        elif not probe.feeds(watch) or watch.batch is None:
            return self.next_batch()  # feeds no training, as one of a validation in between
        self.fresh = True
        return renewed(watch.batch)

    def next_batch(self):
        probe, watch = self.probe, self.watch
        self.keep_work()
        asked = time.perf_counter()
        try:
            batch = next(self.real)
        except StopIteration:
            self.given = None
            if not self.is_last_of_training():
                probe.live.discard(self)
                raise
            probe.begin(watch)  # an epoch that is short: what comes after it may save something
            return self.give()
        if probe.is_off() or probe.repeats():
            return batch
        self.given = time.perf_counter()
        self.batches += 1
        watch.batches += 1
        if self.batches > 2:  # the first ones wait for workers and kernels
            watch.waited += self.given - asked
        watch.batch = batch
        self.fresh = True
        return renewed(batch)

    # The time since the last batch was work.
    def keep_work(self):
        if self.given is not None and self.batches > 2:
            self.watch.worked += time.perf_counter() - self.given
            self.watch.counted += 1
        self.given = None

    # False where another loader feeds the same step: then this one is begun anew, and it goes on.
    def is_last_of_training(self):
        watch = self.watch
        probe = self.probe
        if probe.repeats() or not probe.feeds(watch) or watch.batch is None:
            return False
        return not [one for one in probe.live if one is not self and probe.feeds(one.watch)]

    # Called before each repeated batch.
    def time_step(self):
        probe, watch = self.probe, self.watch
        if self.since is None:
            if watch.warm > 0:
                watch.warm -= 1
                return
            probe.wait_for_device()
            self.since = time.perf_counter()
            return
        self.timed += 1
        steps = watch.alone_steps + self.timed
        seconds = watch.alone_seconds + time.perf_counter() - self.since
        if steps >= LEAST_STEPS and (seconds > probe.seconds * STEP_PART or steps >= MOST_STEPS):
            self.end(complete=True)

    # The steps so far are all that will be timed: the loop is left, or is about to save something.
    # Without one they go on with the next iterator.
    def end(self, complete=False):
        if self.keep_steps(complete):
            self.probe.finish(self.watch)

    # False: there was none.
    def keep_steps(self, complete):
        if self.since is None:
            return False
        if not complete and not self.fresh:
            self.timed += 1  # the optimizer has stepped with the last batch
        self.probe.wait_for_device()
        if self.timed > 0:
            self.watch.alone_steps += self.timed
            self.watch.alone_seconds += time.perf_counter() - self.since
        self.since, self.timed = None, 0
        return self.watch.alone_steps > 0

    # A loop that is left has no other sign, and what follows it has not run yet. Where no optimizer
    # has stepped with the last batch an error may have ended it: then that has to be seen.
    def __del__(self):
        probe, watch = self.probe, self.watch
        if sys.is_finalizing() or probe.is_off() or not probe.leads:
            return
        if probe.primary is None:
            self.keep_work()
        elif probe.primary is watch and self.since is not None:
            if not self.fresh:
                return self.end()
            if self.keep_steps(complete=True):
                watch.kept = self.loader
                probe.answer.put("step", step=watch.step())


# Of an iterable dataset there is none, and a class of the program's may say so in its own way.
def length_of(loader):
    try:
        return len(loader)
    except Exception:
        return None


def batch_size_of(loader):
    size = getattr(loader.batch_sampler, "batch_size", loader.batch_size)
    return size if isinstance(size, int) and size >= 0 else None
