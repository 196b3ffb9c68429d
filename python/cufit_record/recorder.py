# SPDX-License-Identifier: Apache-2.0
"""Torch's memory history, and snapshots of it."""

import contextlib
import os
import pickle
import signal
import sys
import threading
import time

from cufit_import_hook import on_import

from .messages import said, say


class Recorder:
    # A program that catches and retries would fill the disk: the first moments have a snapshot
    # each, the later ones share the last one's.
    MOST_AT_OOM = 3
    # A snapshot that the next one replaces is written only where it takes a tenth of the time since
    # the one before; what it leaves out is written at the end of the program.
    LEAST_PAUSE = 10

    def __init__(self, wanted):
        self.wanted = wanted
        self.shown = {"oom": 0, "oom-last": 0, "signal": 0, "exit": 0}
        self.ooms = 0
        self.ooms_tried = 0  # the moment that the newest snapshot shows, if it could be written
        self.written_at = self.took = 0.0
        self.writing = threading.Lock()
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
        import atexit

        atexit.register(self.at_exit)

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
        again = self.shown[why] > 1 and why != "oom-last"
        times = "-%d" % self.shown[why] if again else ""
        rank = "" if rank is None else "-rank" + rank
        name = "cufit-mem%s-%d-%s%s.pickle" % (rank, os.getpid(), why, times)
        path = os.path.join(self.wanted["OUT"], name)
        began = time.monotonic()
        if why.startswith("oom"):
            self.ooms_tried = self.ooms
        try:
            self.write(path + ".part")
            os.replace(path + ".part", path)
        except Exception as error:
            self.note("unwritten", said(error))
            with contextlib.suppress(OSError):
                os.unlink(path + ".part")
            return
        finally:  # a disk that is full is not asked at every moment either
            self.written_at = time.monotonic()
            self.took = self.written_at - began
        if why.startswith("oom"):
            self.note("moment", "%d %s" % (self.ooms, path))
        else:
            self.note("snapshot", path)
        say("WROTE", path=path)

    # As _dump_snapshot, with what the process may take beside it.
    def write(self, path):
        limits = self.limits()
        if not limits:
            self.torch.cuda.memory._dump_snapshot(path)
            return
        snapshot = self.torch.cuda.memory._snapshot()
        snapshot["cufit_limits"] = limits
        with open(path, "wb") as file:
            pickle.dump(snapshot, file)

    # Bytes by device, where a memory fraction is set and this torch tells it.
    def limits(self):
        cuda = self.torch.cuda
        found = {}
        try:
            for device in range(cuda.device_count()):
                fraction = cuda.get_per_process_memory_fraction(device)
                if 0 < fraction < 1:
                    total = cuda.get_device_properties(device).total_memory
                    found[str(device)] = int(fraction * total)
        except Exception:  # an older torch, or another kind of it
            return {}
        return found

    def at_oom(self, device, alloc, device_alloc, device_free):
        self.ooms += 1
        self.note("oom", self.ooms)
        if self.shown["oom"] < self.MOST_AT_OOM:
            say("OOM", device=device, bytes=alloc)
            self.dump_alone("oom")
        elif time.monotonic() - self.written_at >= self.LEAST_PAUSE * self.took:
            self.dump_alone("oom-last")

    # Memory may run out on several threads at once; one of them writes.
    def dump_alone(self, why):
        if not self.writing.acquire(blocking=False):
            return
        try:
            self.dump(why)
        finally:
            self.writing.release()

    def at_exit(self):
        if self.ooms_tried < self.ooms:
            self.dump("oom-last")  # its trace ends with what came after that moment
        if self.wanted["EXIT"]:
            self.dump("exit")

    def at_signal(self, number, frame):
        if self.torch is not None:
            self.dump("signal")
        else:
            say("NOT_YET", pid=os.getpid())
