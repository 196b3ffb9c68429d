# SPDX-License-Identifier: Apache-2.0
"""Reads what the tracer wrote (src/formats/model/trace_events.h), as objects and as text."""

import collections

TEXT, SITE, ALLOC, FREE, MARK, CALL, CATEGORY, NOTE, FACT, END = range(1, 11)
CONVOLUTION = 12
MARKS = "step begins", "step ends", "micro-batch", "after the steps"
CATEGORIES = (
    None,
    "parameter",
    "buffer",
    "gradient",
    "optimizer state",
    "input",
    "gathered",
    "communication",
)
PHASES = "setup", "forward", "backward", "optimizer", "other", "validation"

Site = collections.namedtuple("Site", "op module source phase stream")


class Storage:
    def __init__(self, number, size, site):
        self.number, self.size, self.site = number, size, site
        self.category = None
        self.until = None  # how many storages there had been when it was freed


class Trace:
    def __init__(self, data):
        assert data[:8] == b"CUFITEV1", "not an event file"
        self.data, self.at = data, 8
        self.texts, self.sites = [], []
        self.storages, self.alive = [], {}
        self.facts, self.notes, self.calls = {}, [], []
        self.marks = []  # mark, the storages that were alive
        self.end = None
        self.lines = []
        while self.at < len(data):
            self.record(self.number())

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def text(self):
        return self.texts[self.number()]

    def record(self, kind):
        if kind == TEXT:
            size = self.number()
            self.texts.append(self.data[self.at : self.at + size].decode())
            self.at += size
        elif kind == SITE:
            names = self.text(), self.text(), self.text()
            phase = self.number()
            self.sites.append(Site(*names, PHASES[phase % 8], phase // 8))
        elif kind in (ALLOC, FREE, CATEGORY):
            self.of_storage(kind)
        elif kind == MARK:
            mark = MARKS[self.number()]
            self.marks.append((mark, list(self.alive.values())))
            held = sum(storage.size for storage in self.alive.values())
            self.lines.append("-- %s: %d storages, %d bytes" % (mark, len(self.alive), held))
        elif kind == CALL:
            site = self.sites[self.number()]
            numbers = [self.number() for _ in range(self.number())]
            self.calls.append((site, numbers))
            self.lines.append("call %s %s %s" % (shown(site), site.op, numbers))
        else:
            self.of_program(kind)

    def of_storage(self, kind):
        number = self.number()
        if kind == ALLOC:
            storage = Storage(len(self.storages), number, self.sites[self.number()])
            self.storages.append(storage)
            self.alive[storage.number] = storage
            self.lines.append("%d bytes %s %s" % (number, shown(storage.site), storage.site.op))
        elif kind == FREE:
            self.alive.pop(len(self.storages) - 1 - number).until = len(self.storages)
        else:
            storage = self.storages[len(self.storages) - 1 - number]
            category = CATEGORIES[self.number()]
            if category != storage.category:
                self.lines.append("%d is a %s" % (storage.number, category))
            storage.category = category

    def of_program(self, kind):
        if kind == NOTE:
            note = self.text(), self.text(), self.text()
            self.notes.append(note)
            self.lines.append("note %s: %s (%s)" % note)
        elif kind == FACT:
            key, value = self.text(), self.text()
            self.facts[key] = value
            self.lines.append("fact %s = %s" % (key, value))
        elif kind == END:
            self.end = ("seen", "ended", "failed")[self.number()]
            self.lines.append("end: " + self.end)
        else:
            raise AssertionError("an unknown record: %d" % kind)

    # -- what tests ask

    def bytes_of(self, category):
        return sum(storage.size for storage in self.storages if storage.category == category)

    def sizes(self, op, **wanted):
        def fits(site):
            same = all(getattr(site, key) == value for key, value in wanted.items())
            return site.op == op and same

        return [storage.size for storage in self.storages if fits(storage.site)]

    def calls_of(self, op):
        return [numbers for site, numbers in self.calls if site.op == op]

    # The storages that are there at the marks of a name.
    def alive_at(self, mark):
        return [alive for name, alive in self.marks if name == mark]


def shown(site):
    stream = " on stream %d" % site.stream if site.stream else ""
    return "%s, %s, %s%s:" % (site.phase, site.module or "-", site.source or "-", stream)
