# SPDX-License-Identifier: Apache-2.0
"""Streams and events. A data loader that copies ahead does so on a stream of its own, whose blocks
no other stream takes. PyTorch has 32 that go round; here it is 15. What backward makes is taken for
the stream's on which backward was called."""

import itertools


class Waits:
    """Memory that `record_stream` told of another stream: what is freed is taken again once the
    work of that stream is done (CachingAllocator::free_requested, free_completed)."""

    MOST = 200  # of one record
    # Operators by which the program is ahead of the GPU at most: as many kernels wait in a stream,
    # then the one that starts another waits itself.
    AHEAD = 1024

    def __init__(self, tracer):
        self.tracer, self.file = tracer, tracer.file
        self.recorded = set()  # storages, by number
        self.waiting = []  # when they were freed, counted in operators, and numbers

    def record(self, tensor, stream):
        held = self.tracer.held.get(tensor.untyped_storage())
        if held is not None and held[1] and held[2] != getattr(stream, "stream_id", held[2]):
            self.recorded.add(held[0])

    def free(self, number):
        if number in self.recorded:
            self.recorded.discard(number)
            self.call("waits_for_event", [number])
            self.waiting.append((self.tracer.operators, number))
        self.file.free(number)
        if self.waiting and self.waiting[0][0] <= self.tracer.operators - self.AHEAD:
            self.done(self.tracer.operators - self.AHEAD)

    # What was freed until then, in operators.
    def done(self, until=None):
        numbers = [number for when, number in self.waiting if until is None or when <= until]
        if not numbers:
            return
        self.waiting = [] if until is None else [w for w in self.waiting if w[0] > until]
        for at in range(0, len(numbers), self.MOST):
            self.call("events_done", numbers[at : at + self.MOST])

    def call(self, op, numbers):
        site = self.file.site(op, "", "", self.tracer.phase)
        self.file.call(site, [self.file.storages - 1 - number for number in numbers])


class Streams:
    """The classes, and the functions of torch.cuda about them."""

    def __init__(self, Stream, Event, OneStream, current, set_stream):
        self.Stream, self.Event, self.OneStream = Stream, Event, OneStream
        self.default = Stream()
        self.set_stream = set_stream
        self.current_stream = lambda *a, **k: current[-1]
        current.append(self.default)

    def functions(self):
        stream = self.default
        return {
            "Stream": self.Stream,
            "Event": self.Event,
            "current_stream": self.current_stream,
            "default_stream": lambda *a, **k: stream,
            "stream": self.OneStream,
            "set_stream": self.set_stream,
        }


def patch_streams(tracer):
    torch = tracer.torch
    made, current = itertools.count(), []

    class Stream:
        def __init__(self, *args, **kwargs):
            number = 0 if isinstance(self, Event) else next(made)
            self.device = torch.device("cuda", 0)
            self.stream_id = self.cuda_stream = (number - 1) % 15 + 1 if number else 0
            self.device_index = 0
            self.device_type = 1

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return lambda *args, **kwargs: True if name == "query" else None

        def record_event(self, event=None):
            event = event or Event()
            event.record(self)
            return event

        def synchronize(self):
            tracer.waits.done()

        def __enter__(self):
            current.append(self)
            tracer.file.stream = self.stream_id
            return self

        def __exit__(self, *args):
            current.pop()
            tracer.file.stream = current[-1].stream_id

    class Event(Stream):
        def __init__(self, *args, **kwargs):
            self.recorded = 0

        def record(self, *args):
            self.recorded = tracer.operators

        def synchronize(self):
            tracer.waits.done(self.recorded)

        def elapsed_time(self, other):
            return 1.0

    class OneStream:
        def __init__(self, stream=None):
            self.stream = stream if isinstance(stream, Stream) else current[-1]

        def __enter__(self):
            return self.stream.__enter__()

        def __exit__(self, *args):
            self.stream.__exit__()

    def set_stream(stream=None):
        if isinstance(stream, Stream):
            current[-1] = stream
            tracer.file.stream = stream.stream_id

    copying(torch, Stream)
    return Streams(Stream, Event, OneStream, current, set_stream)


# DistributedDataParallel copies a batch that lies in the host's memory on a stream of its own.
def copying(torch, Stream):
    from torch.nn.parallel import _functions

    kept = []

    def one(device):
        if device.type == "cpu":
            return None
        if not kept:
            kept.append(Stream())
        return kept[0]

    if hasattr(_functions, "_get_stream"):
        _functions._get_stream = one
