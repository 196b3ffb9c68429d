# SPDX-License-Identifier: Apache-2.0
"""Streams and events. A data loader that copies ahead does so on a stream of its own, whose blocks
no other stream takes. PyTorch has 32 that go round; here it is 15. What backward makes is taken for
the stream's on which backward was called."""

import itertools


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
            return event or Event()

        def __enter__(self):
            current.append(self)
            tracer.file.stream = self.stream_id
            return self

        def __exit__(self, *args):
            current.pop()
            tracer.file.stream = current[-1].stream_id

    class Event(Stream):
        def __init__(self, *args, **kwargs):
            pass

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
