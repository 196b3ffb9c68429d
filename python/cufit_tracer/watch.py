# SPDX-License-Identifier: Apache-2.0
"""A program that does not come to its steps: says every few seconds, for cufit to show, where it
is; at DEADLINE (seconds of the machine's monotonic clock) ends it with a note of its line and of
the function that it was in."""

import os
import sys
import threading
import time

from .event_file import FAILED, EventFile
from .user_files import users_file


def watch(wanted, tracers):
    watched = Watch(wanted, tracers)
    threading.Thread(target=watched.look, name="cufit", daemon=True).start()


# Of another thread's frame it may be None, between two lines.
def line_of(frame):
    return frame.f_lineno or frame.f_code.co_firstlineno


class Watch:
    def __init__(self, wanted, tracers):
        self.wanted, self.tracers = wanted, tracers
        self.deadline = float(wanted["DEADLINE"] or 0)
        self.main = threading.main_thread().ident
        self.open = open  # as it is before the program's files are kept apart

    def look(self):
        while True:
            left = self.deadline - time.monotonic() if self.deadline else 5
            if self.tracers and self.tracers[0].after.hangs():
                left = 0
            if left <= 0:
                self.stop()
            time.sleep(min(left, 5))
            source = self.place()[0]
            if source and self.wanted["PROGRESS"]:
                self.tell(source)

    # The user's own line, and the function of a library that it waits for.
    def place(self):
        frame = innermost = sys._current_frames().get(self.main)
        while frame is not None:
            own = users_file(frame.f_code.co_filename)
            if own:
                inside = ""
                if frame is not innermost:
                    code = innermost.f_code
                    where = os.path.basename(code.co_filename), line_of(innermost)
                    inside = "%s (%s:%d)" % (code.co_name, *where)
                return "%s:%d" % (own, line_of(frame)), inside
            frame = frame.f_back
        return "", ""

    def tell(self, source):
        part = "%s.%d" % (self.wanted["PROGRESS"], os.getpid())
        try:
            with self.open(part, "w") as out:
                steps = self.tracers[0].steps if self.tracers else 0
                out.write("%d\n%s\n" % (steps, source))
            os.replace(part, self.wanted["PROGRESS"])
        except OSError:
            pass

    def stop(self):
        source, inside = self.place()
        tracer = self.tracers[0] if self.tracers else None
        file = tracer.file if tracer else EventFile(self.wanted["OUT"])
        if not source and not file.on_disk:
            time.sleep(2)  # a launcher: the process that runs the user's lines goes first
        with file.lock:
            if tracer and tracer.ending() != FAILED:
                if tracer.after.hangs():
                    file.tell_all()
                tracer.tell_lengths()
                file.end(tracer.ending())
            else:
                file.note("timed_out", inside, source)
                file.end(FAILED)
        os._exit(3)
