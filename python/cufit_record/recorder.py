# SPDX-License-Identifier: Apache-2.0
"""Torch's memory history, and snapshots of it."""

import os
import signal
import sys

from cufit_import_hook import on_import

from .messages import said, say


class Recorder:
    MOST_AT_OOM = 3  # a program that catches and retries would fill the disk

    def __init__(self, wanted):
        self.wanted = wanted
        self.shown = {"oom": 0, "signal": 0, "exit": 0}
        self.torch = None  # once recording began

    def wait(self):
        on_import("torch", self.imported)
        try:
            if signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL:
                signal.signal(signal.SIGUSR1, self.at_signal)
        except ValueError:  # not the main thread
            pass
        self.note("python", sys.version.split()[0])

    # One line of a file of this process; `cufit` reads them at the end.
    def note(self, kind, text):
        try:
            with open(os.path.join(self.wanted["STATE"], str(os.getpid())), "a") as file:
                file.write("%s %s\n" % (kind, text))
        except OSError:
            pass

    def imported(self, torch):
        # Before CUDA is initialised there is no allocator whose history could be switched on.
        try:
            torch.cuda._lazy_call(lambda: self.begin(torch))
        except Exception as error:
            say("FAILED", why=said(error))

    def begin(self, torch):
        if self.torch is not None:
            return
        try:
            self.switch_on(torch.cuda.memory._record_memory_history)
            torch._C._cuda_attach_out_of_memory_observer(self.at_oom)
        except Exception as error:
            say("FAILED", why=said(error))
            self.note("failed", said(error))
            return
        self.torch = torch
        self.note("recording", torch.__version__)
        if self.wanted["EXIT"]:
            import atexit

            atexit.register(lambda: self.dump("exit"))

    def switch_on(self, record):
        events = int(self.wanted["EVENTS"])
        stacks = self.wanted["STACKS"]
        try:
            record(enabled="all", context="all", stacks=stacks, max_entries=events)
        except TypeError:  # 2.0
            record(
                True,
                record_context=True,
                trace_alloc_max_entries=events,
                trace_alloc_record_context=True,
            )

    def dump(self, why):
        self.shown[why] += 1
        rank = os.environ.get("RANK")
        times = "" if self.shown[why] == 1 else "-%d" % self.shown[why]
        rank = "" if rank is None else "-rank" + rank
        name = "cufit-mem%s-%d-%s%s.pickle" % (rank, os.getpid(), why, times)
        path = os.path.join(self.wanted["OUT"], name)
        try:
            self.torch.cuda.memory._dump_snapshot(path + ".part")
            os.replace(path + ".part", path)
        except Exception as error:
            self.note("unwritten", said(error))
            return
        self.note("snapshot", path)
        say("WROTE", path=path)

    def at_oom(self, device, alloc, device_alloc, device_free):
        if self.shown["oom"] < self.MOST_AT_OOM:
            say("OOM", device=device, bytes=alloc)
            self.dump("oom")

    def at_signal(self, number, frame):
        if self.torch is not None:
            self.dump("signal")
        else:
            say("NOT_YET", pid=os.getpid())
