# SPDX-License-Identifier: Apache-2.0
"""The program runs up to its training loop. There it is watched for some batches, then given one
batch again and again, then its loader is iterated alone; then the process ends, nothing saved."""

import functools
import os
import sys
import weakref
from contextlib import suppress

from cufit_import_hook import on_import

from .measure import measure
from .watched import Watch, Watched


PLACE = "cufit_place"  # an attribute of loaders: where the program made them


class Probe:
    """`cpus`: counts are kept so small that all processes of a job fit on these; 0: they are as
    asked. `leads`: of a job of several processes the first measures. The others give one batch
    again and again as soon as it does: the step of a job waits for all of them."""

    def __init__(self, answer, seconds, counts, cpus=0, leads=True):
        self.answer, self.seconds, self.counts = answer, seconds, counts
        self.cpus, self.leads, self.processes = cpus, leads, processes_here()
        self.watches = []
        self.live = weakref.WeakSet()  # iterators
        self.iterate = self.torch = None
        self.primary = None  # the watch whose step is timed
        self.stepped = False  # some optimizer has
        self.pid = os.getpid()
        self.off = False

    def wait(self):
        on_import("torch", self.imported)
        on_import("safetensors.torch", lambda module: self.guard(module, "save_file"))

    # A torch that is not as expected is left alone: the program has to run.
    def imported(self, torch):
        with suppress(Exception):
            self.take_over(torch)

    def take_over(self, torch):
        import torch.utils.data

        self.torch = torch
        loader = torch.utils.data.DataLoader
        self.iterate, make, probe = loader.__iter__, loader.__init__, self

        @functools.wraps(make)
        def __init__(itself, *args, **kwargs):
            make(itself, *args, **kwargs)
            itself.__dict__[PLACE] = user_line()

        @functools.wraps(self.iterate)
        def __iter__(itself):
            if probe.is_off():
                return probe.iterate(itself)
            probe.pause()
            return Watched(probe, probe.watch_of(itself), probe.iterate(itself))

        loader.__init__, loader.__iter__ = __init__, __iter__
        self.count_steps(torch.optim.Optimizer)
        self.guard(torch, "save")

    # From torch 2.0 on the step of each class passes through profile_hook_step once, before its
    # first optimizer; before that each class is met when one is made.
    def count_steps(self, optimizer):
        probe = self

        def counted(function):
            @functools.wraps(function)
            def step(itself, *args, **kwargs):
                out = function(itself, *args, **kwargs)
                probe.step_done()
                return out

            step.cufit_counts = True
            return step

        hook = getattr(optimizer, "profile_hook_step", None)
        if hook is not None:
            optimizer.profile_hook_step = staticmethod(lambda function: hook(counted(function)))
            return
        make = optimizer.__init__

        @functools.wraps(make)
        def __init__(itself, *args, **kwargs):
            make(itself, *args, **kwargs)
            kind = type(itself)
            if not getattr(kind.step, "cufit_counts", False):
                kind.step = counted(kind.step)

        optimizer.__init__ = __init__

    # Whether its batches are trained on. One that was only asked between two steps now and then, as
    # of a validation, has a batch at hand by chance.
    def feeds(self, watch):
        most = max(one.steps for one in self.watches)
        return watch.steps > 0 and 2 * watch.steps >= most

    # Each loader whose batch this step may have used.
    def step_done(self):
        if self.is_off():
            return
        self.stepped = True
        for one in list(self.live):
            if one.fresh:
                one.fresh = False
                one.watch.steps += 1

    # Once training has begun no file is written: a checkpoint of a few steps, or of one batch again
    # and again, would take the place of the one that the user has. What goes into an open file is
    # written: its old content is gone by then.
    def guard(self, module, name):
        save, probe = getattr(module, name, None), self
        if save is None:
            return

        @functools.wraps(save)
        def guarded(*args, **kwargs):
            if probe.is_off() or not (probe.stepped or probe.repeats()):
                return save(*args, **kwargs)
            to = args[1] if len(args) > 1 else kwargs.get("f", kwargs.get("filename"))
            out = None if isinstance(to, (str, os.PathLike)) else save(*args, **kwargs)
            probe.leave_steps()
            return out

        setattr(module, name, guarded)

    # One whose place and kind are those of a loader that is gone goes on with its watch: many
    # programs make it anew each epoch.
    def watch_of(self, loader):
        for watch in self.watches:
            if watch.loader() is loader:
                return watch
        kind = Watch.kind_of(loader, loader.__dict__.get(PLACE))
        for watch in self.watches:
            if watch.loader() is None and watch.kind == kind:
                watch.loader = weakref.ref(loader)
                return watch
        self.watches.append(Watch(loader, kind))
        return self.watches[-1]

    # Whether loaders give the batch that they have instead of new ones. A process that does not
    # lead sees by the file that the one that does has begun.
    def repeats(self):
        if self.primary is None and not self.leads and self.answer.is_claimed():
            self.primary = self
        return self.primary is not None

    # The watched step alone is timed by one loader; of several that feed it the one that was waited
    # for most.
    def begin(self, watch):
        if not (self.leads and self.answer.claim()):
            self.leads, self.primary = False, self
            return
        feeding = [watch] + [one.watch for one in self.live if self.feeds(one.watch)]
        self.primary = max(feeding, key=lambda one: one.waited)
        others = {one.place() for one in feeding if one is not self.primary}
        self.answer.put("step", **self.primary.told(self, sorted(one or "?" for one in others)))

    # Another loop begins, perhaps within one that goes on later: its time is nobody's work.
    def pause(self):
        for one in list(self.live):
            one.keep_work()
        self.leave_steps()

    # The loop is left while its steps are timed: some were, and nothing that follows is to run.
    def leave_steps(self):
        for one in list(self.live):
            if one.watch is self.primary:
                one.end()
        watch = self.primary
        if self.leads and watch is not None and watch.alone_steps > 0:
            self.finish(watch)

    # Does not return.
    def finish(self, watch):
        try:
            measure(self, watch)
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        finally:
            # Neither atexit nor finally of the program: they may save a checkpoint.
            os._exit(0)

    # Also in the workers, which have forked, and in threads of other processes.
    def is_off(self):
        return self.off or os.getpid() != self.pid

    def wait_for_device(self):
        if self.torch.cuda.is_initialized():
            self.torch.cuda.synchronize()


# Of the job on this host, by what torchrun and its like set.
def processes_here():
    for name in ("LOCAL_WORLD_SIZE", "WORLD_SIZE"):
        word = os.environ.get(name, "")
        if word.isdigit() and 0 < int(word) <= 4096:
            return int(word)
    return 1


# "train.py:57": the nearest line that is neither torch's nor cufit's nor a library's.
def user_line():
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if "cufit_loader" not in file and "site-packages" not in file and file[:1] != "<":
            return "%s:%d" % (file, frame.f_lineno)
        frame = frame.f_back
    return None
