# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs."""

import contextlib
import itertools


class Pools:
    """What is captured runs once, as it stands. What it takes lies in the graph's pool, or in the
    one it is given: sites name it as a stream, FIRST to LAST (formats/model/trace_events.h). A pool
    lives for as long as a graph that was captured in it; its name is then another's."""

    FIRST, LAST = 16, 255

    def __init__(self, tracer):
        self.tracer, self.made = tracer, itertools.count()
        self.names, self.users = {}, {}  # by pool

    def new(self, *args, **kwargs):
        return 0, next(self.made)

    def take(self, pool):
        self.users[pool] = self.users.get(pool, 0) + 1
        if pool not in self.names:
            taken = set(self.names.values())
            free = (name for name in range(self.FIRST, self.LAST + 1) if name not in taken)
            # Of more at once the last share one.
            self.names[pool] = next(free, self.LAST)
        return self.names[pool]

    # What is cached in it is given back where the program asks for that, or runs out of memory.
    def leave(self, pool):
        self.users[pool] -= 1
        if self.users[pool]:
            return
        del self.users[pool]
        name = self.names.pop(pool)
        if name in self.names.values():
            return
        tracer = self.tracer
        site = tracer.file.site("graph_pool_released", "", tracer.source(), tracer.phase)
        # Of no operator that is under way: graphs go where Python collects them.
        type(tracer.file).call(tracer.file, site, [name])


def patch_graphs(tracer):
    torch, pools = tracer.torch, Pools(tracer)

    class CUDAGraph:
        def __init__(self, *args, **kwargs):
            self.in_pool = None

        def capture_begin(self, pool=None, *args, **kwargs):
            self.reset()
            tracer.capturing = tracer.captured = True
            self.in_pool = pool if isinstance(pool, tuple) else pools.new()
            self.before, tracer.file.stream = tracer.file.stream, pools.take(self.in_pool)
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
            return self.in_pool or pools.new()

        def reset(self):
            pool, self.in_pool = self.in_pool, None
            if pool is not None:
                pools.leave(pool)

        def __del__(self):
            with contextlib.suppress(Exception):  # Python itself ends
                self.reset()

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return lambda *args, **kwargs: None

    graphs = torch.cuda.graphs
    torch.cuda.CUDAGraph = graphs.CUDAGraph = CUDAGraph
    torch.cuda.graph_pool_handle = graphs.graph_pool_handle = pools.new
