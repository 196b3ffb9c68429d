# SPDX-License-Identifier: Apache-2.0
"""The file of events that `cufit fit` reads (src/formats/model/trace_events.h)."""

import io
import threading

# Marks, categories of storages, phases, why the file ends.
STEP_BEGINS, STEP_ENDS, MICRO_BATCH, AFTER_STEPS = range(4)
PARAMETER, BUFFER, GRADIENT, OPTIMIZER_STATE, INPUT, GATHERED, COMMUNICATION = range(1, 8)
SETUP, FORWARD, BACKWARD, OPTIMIZER, OTHER, VALIDATION = range(6)
SEEN, ENDED, FAILED = range(3)


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
        self.places = []  # of sites, by number
        self.notes = set()
        # Of texts, and of which file it is: another thread may end it (watch.py).
        self.lock = threading.RLock()
        self.storages = self.calls = 0
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
        with self.lock:
            self.out.write(record)

    # A launcher (torchrun, accelerate) imports torch, too, and allocates nothing: the file belongs
    # to the first process that does. False where another process has it.
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

    # Numbered as they are written: what another thread has told meanwhile is not told again.
    def text(self, text):
        number = self.texts.get(text)
        if number is None:
            with self.lock:
                if text in self.texts:
                    return self.texts[text]
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
            with self.lock:
                if key in self.sites:
                    return self.sites[key]
                texts = self.text(op), self.text(module), self.text(source)
                number = self.sites[key] = len(self.sites)
                self.places.append(key)
                self._write(self.SITE, *texts, phase + 8 * key[-1])
        return number

    # Storages are counted back from the last one, and threads of the program tell of them, too.
    def alloc(self, size, site):
        with self.lock:
            self._write(self.ALLOC, size, site)
            self.storages += 1
            return self.storages - 1

    def free(self, storage):
        with self.lock:
            self._write(self.FREE, self.storages - 1 - storage)

    def category(self, storage, category):
        with self.lock:
            self._write(self.CATEGORY, self.storages - 1 - storage, category)

    def mark(self, kind):
        self._write(self.MARK, kind)

    def call(self, site, numbers):
        self._write(self.CALL, site, len(numbers), *numbers)
        self.calls += 1

    def note(self, kind, detail, source):
        key = (kind, detail, source)
        if key not in self.notes and len(self.notes) < 1000:
            self.notes.add(key)
            self._write(self.NOTE, self.text(kind), self.text(detail[:4000]), self.text(source))

    def fact(self, key, value):
        self._write(self.FACT, self.text(key), self.text(str(value)))

    # `row`: for each batch size that and the six numbers of Cudnn.ask.
    def convolution(self, capability, way, numbers, row):
        self._write(
            self.CONVOLUTION,
            capability,
            way,
            len(numbers),
            *numbers,
            len(row),
            *[number for answer in row for number in answer],
        )

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
