# SPDX-License-Identifier: Apache-2.0
"""Runs at the start of every Python below `cufit fit`: lets a training program run on a machine without a GPU, for a few
steps and without its arithmetic, and writes what its tensors would have asked of the CUDA caching allocator.

What is on the CPU stays real (data loaders, tokenizers, random crops); what goes to `cuda` becomes a fake tensor: a shape, a
type and a storage that holds nothing. Small tensors that began as real data keep their values in a shadow on the CPU, so that
a mask or a length can be read; any other value that the program reads is made up, and the event file says where.
Needs torch 2.4 or later, built with CUDA or without, and nothing else."""
import collections.abc
import io
import os
import sys
import tempfile
import threading
import time
import weakref


# ---- the event file ---------------------------------------------------------------------------------------------------------

class EventFile:
    """Records as `formats/model/trace_events.h` tells them; every number a LEB128 varint."""

    TEXT, SITE, ALLOC, FREE, MARK, CALL, CATEGORY, NOTE, FACT, END = range(1, 11)
    CONVOLUTION = 12

    def __init__(self, path):
        self.path = path
        self.out = io.BytesIO(b"")
        self.out.write(b"CUFITEV1")
        self.on_disk = False
        self.texts = {}
        self.sites = {}
        self.notes = set()
        self.lock = threading.RLock()  # texts, and which file: another thread may end it (7_watch.py)
        self.storages = 0
        self.stream = 0  # of CUDA, on which the program allocates
        self.closed = False
        self.before_end = []  # called once

    def _write(self, kind, *numbers):
        if self.closed:
            return
        record = bytearray((kind,))
        for number in numbers:
            while number > 0x7F:
                record.append(number & 0x7F | 0x80)
                number >>= 7
            record.append(number)
        self.out.write(record)

    # A launcher (torchrun, accelerate) imports torch, too, and allocates nothing: the file belongs to the first process that
    # does. False where another process has it.
    def begin(self):
        with self.lock:
            if self.on_disk:
                return True
            try:
                file = open(self.path, "xb", buffering=1 << 20)
            except FileExistsError:
                self.closed = True
                return False
            file.write(self.out.getvalue())
            self.out = file
            self.on_disk = True
            return True

    def text(self, text):
        number = self.texts.get(text)
        if number is None:
            with self.lock:
                number = self.texts[text] = len(self.texts)
                data = text.encode("utf-8", "replace")
                self._write(self.TEXT, len(data))
                if not self.closed:
                    self.out.write(data)
        return number

    def site(self, op, module, source, phase):
        key = (op, module, source, phase, self.stream)
        number = self.sites.get(key)
        if number is None:
            texts = self.text(op), self.text(module), self.text(source)
            number = self.sites[key] = len(self.sites)
            self._write(self.SITE, *texts, phase + 8 * self.stream)
        return number

    def alloc(self, size, site):
        self._write(self.ALLOC, size, site)
        self.storages += 1
        return self.storages - 1

    def free(self, storage):
        self._write(self.FREE, self.storages - 1 - storage)

    def category(self, storage, category):
        self._write(self.CATEGORY, self.storages - 1 - storage, category)

    def mark(self, kind):
        self._write(self.MARK, kind)

    def call(self, site, numbers):
        self._write(self.CALL, site, len(numbers), *numbers)

    def note(self, kind, detail, source):
        key = (kind, detail, source)
        if key not in self.notes and len(self.notes) < 1000:
            self.notes.add(key)
            self._write(self.NOTE, self.text(kind), self.text(detail[:4000]), self.text(source))

    def fact(self, key, value):
        self._write(self.FACT, self.text(key), self.text(str(value)))

    # `row`: for each batch size that and the six numbers of Cudnn.ask.
    def convolution(self, capability, way, numbers, row):
        self._write(self.CONVOLUTION, capability, way, len(numbers), *numbers, len(row), *[number for answer in row for number in answer])

    def tell_all(self):
        while self.before_end:
            self.before_end.pop()()

    def end(self, reason):
        if not self.closed and self.begin():
            if threading.current_thread() is threading.main_thread():
                self.tell_all()
            self._write(self.END, reason)
            self.closed = True
            self.out.close()


# ---- the user's own files ---------------------------------------------------------------------------------------------------

OWN = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = tuple({os.path.dirname(os.path.abspath(os.__file__)) + os.sep, os.path.join(sys.prefix, "bin") + os.sep,
                   os.path.join(sys.base_prefix, "bin") + os.sep, OWN + os.sep})


# Libraries write code into the folder for temporary files (torch_geometric), under another name in each run.
def generated(path):
    program = os.path.abspath(sys.argv[0]) if getattr(sys, "argv", None) else ""
    return os.path.dirname(path) == tempfile.gettempdir() != os.path.dirname(program)


# Its path from here; empty for what is installed.
def users_file(name):
    path = os.path.abspath(name)
    if name.startswith("<") or path.startswith(LIBRARIES) or "/site-packages/" in path or "/dist-packages/" in path or generated(path):
        return ""
    return os.path.relpath(path)


STEP_BEGINS, STEP_ENDS, MICRO_BATCH, AFTER_STEPS = range(4)
PARAMETER, BUFFER, GRADIENT, OPTIMIZER_STATE, INPUT = range(1, 6)
SETUP, FORWARD, BACKWARD, OPTIMIZER, OTHER, VALIDATION = range(6)
SEEN, ENDED, FAILED = range(3)


def settings():
    keys = "OUT", "BATCH", "STEPS", "FUNCTION", "SCRATCH", "GPU", "VARIANT", "CUDNN", "SEQ", "DEADLINE", "PROGRESS", "DEVICE", "MOST_STEPS", "BATCH_WAS"
    value = {key: os.environ.get("CUFIT_FIT_" + key) for key in keys}
    value["BATCH"] = int(value["BATCH"]) if value["BATCH"] else None
    value["BATCH_WAS"] = int(value["BATCH_WAS"]) if value["BATCH_WAS"] else None
    value["SEQ"] = int(value["SEQ"]) if value["SEQ"] else None
    value["STEPS"] = int(value["STEPS"] or 3)
    value["MOST_STEPS"] = int(value["MOST_STEPS"] or max(value["STEPS"], 12))
    name, capability, total = (value["GPU"] or "NVIDIA H200,9.0,150110011392").rsplit(",", 2)
    value["GPU"] = name, tuple(int(part) for part in capability.split(".")), int(total)
    return value


