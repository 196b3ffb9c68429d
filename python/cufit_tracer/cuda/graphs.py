# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs."""

import itertools


# What is captured runs once, as it stands. What it takes lies in the graph's pool, or in the one
# it is given: sites name it as a stream, 16 to 31, then again (formats/model/trace_events.h).
FIRST, LAST = 16, 31


def patch_graphs(tracer):
    torch, made = tracer.torch, itertools.count()

    def new_pool():
        return 0, FIRST + next(made) % (LAST + 1 - FIRST)

    class CUDAGraph:
        def __init__(self, *args, **kwargs):
            self.in_pool = None

        def capture_begin(self, pool=None, *args, **kwargs):
            tracer.capturing = tracer.captured = True
            self.in_pool = pool if isinstance(pool, tuple) else new_pool()
            self.before, tracer.file.stream = tracer.file.stream, self.in_pool[1]
            said = "a CUDA graph's own pool is taken for what the capture needed at most"
            tracer.file.note("assumed", said, tracer.source())

        def capture_end(self):
            tracer.capturing = False
            tracer.file.stream = self.before

        def replay(self):
            # A loader that gives no more batches ends a loop of replays; nothing ends one without.
            if tracer.after.began and tracer.after.by_hand and not tracer.after.running:
                tracer.after.leave()

        def pool(self):
            return self.in_pool or new_pool()

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return lambda *args, **kwargs: None

    graphs = torch.cuda.graphs
    torch.cuda.CUDAGraph = graphs.CUDAGraph = CUDAGraph
    torch.cuda.graph_pool_handle = graphs.graph_pool_handle = new_pool
