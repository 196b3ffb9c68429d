# SPDX-License-Identifier: Apache-2.0
"""A program that does not come to its steps: says every few seconds, for cufit to show, where it
is, and ends it with a note of its line and of the function that it was in

- after IDLE seconds without an operator of PyTorch, in none of the processes that are traced
- after OPERATORS of them
- at DEADLINE (seconds of the machine's monotonic clock), which somebody asked for."""

import os
import sys
import threading
import time

from .event_file import FAILED, EventFile
from .user_files import users_file


def watch(wanted, tracers):
    watched = Watch(wanted, tracers)
    threading.Thread(target=watched.look, name="cufit", daemon=True).start()


# The code that a thread is in and its lines, innermost first. What holds a frame keeps its
# variables, and with them memory that the program has given back: none is held when this returns,
# and nothing in it lets another thread run.
def lines_of(thread):
    lines, frame = [], sys._current_frames().get(thread)
    while frame is not None:
        # Of another thread's frame it may be None, between two lines.
        lines.append((frame.f_code, frame.f_lineno or frame.f_code.co_firstlineno))
        frame = frame.f_back
    return lines


class Watch:
    PAUSE = 5
    STARTS = 600  # seconds until PyTorch is there, at least
    OPERATORS = 8000000  # about ten times those of the longest programs of docs/fit-accuracy.md
    # A thread that fetched batches has ended, and the program waits for it: it comes to no operator
    # and hardly to a processor.
    HANGS_SECONDS, HANGS_PROCESSOR = 25, 1

    def __init__(self, wanted, tracers):
        self.wanted, self.tracers = wanted, tracers
        self.deadline, self.idle = float(wanted["DEADLINE"] or 0), float(wanted["IDLE"] or 0)
        self.main = threading.main_thread().ident
        self.open = open  # as it is before the program's files are kept apart
        self.operators, self.beat = -1, None  # torch is not there yet
        self.advanced = self.moved = time.monotonic()
        self.processor = time.process_time()

    def look(self):
        while True:
            left = self.deadline - time.monotonic() if self.deadline else self.PAUSE
            self.look_at_work()
            limit = self.limit(left)
            if limit:
                self.stop(limit)
            time.sleep(min(left, self.PAUSE))
            source = self.place()[0]
            if source and self.wanted["PROGRESS"]:
                self.tell(source)

    # A launcher and the processes that it starts share a file that is written anew with each look
    # at which one of them had advanced. cufit looks at it, too, where this thread cannot run.
    def look_at_work(self):
        operators = self.tracers[0].operators if self.tracers else -1
        beat = self.wanted["PROGRESS"] and self.wanted["PROGRESS"] + ".beat"
        if operators != self.operators:
            self.operators, self.moved = operators, time.monotonic()
            self.advanced, self.processor = self.moved, time.process_time()
            if beat:
                self.write(beat, "")
        if beat and self.written(beat) != self.beat:
            self.beat, self.advanced = self.written(beat), time.monotonic()

    def write(self, path, text):
        try:
            with self.open(path, "w") as out:
                out.write(text)
            return True
        except OSError:
            return False

    @staticmethod
    def written(path):
        try:
            return os.stat(path).st_mtime_ns
        except OSError:
            return None

    def limit(self, left):
        if left <= 0 or self.hangs():
            return "time"
        idle = self.idle if self.operators >= 0 else max(self.idle, self.STARTS)
        if self.idle and time.monotonic() - self.advanced > idle:
            return "idle"
        return "operators" if self.idle and self.operators > self.OPERATORS else ""

    def hangs(self):
        after = self.tracers[0].after if self.tracers else None
        if after is None or not after.began or after.left:
            return False
        waited = time.monotonic() - self.moved > self.HANGS_SECONDS
        return waited and time.process_time() - self.processor < self.HANGS_PROCESSOR

    # The user's own line, and the function of a library that it waits for.
    def place(self):
        lines = lines_of(self.main)
        for code, line in lines:
            own = users_file(code.co_filename)
            if own:
                inside, (innermost, waits) = "", lines[0]
                if code is not innermost:
                    where = os.path.basename(innermost.co_filename), waits
                    inside = "%s (%s:%d)" % (innermost.co_name, *where)
                return "%s:%d" % (own, line), inside
        return "", ""

    def tell(self, source):
        part = "%s.%d" % (self.wanted["PROGRESS"], os.getpid())
        steps = self.tracers[0].steps if self.tracers else 0
        if self.write(part, "%d\n%s\n" % (steps, source)):
            try:
                os.replace(part, self.wanted["PROGRESS"])
            except OSError:
                pass

    def stop(self, limit):
        source, inside = self.place()
        tracer = self.tracers[0] if self.tracers else None
        file = tracer.file if tracer else EventFile(self.wanted["OUT"])
        if not source and not file.on_disk:
            time.sleep(2)  # a launcher: the process that runs the user's lines goes first
        with file.lock:
            if tracer and tracer.ending() != FAILED:
                if self.hangs():
                    file.tell_all()
                tracer.tell_lengths()
                file.end(tracer.ending())
            else:
                file.note("timed_out", inside, source)
                file.fact("stopped_by", limit)
                file.end(FAILED)
        os._exit(3)
