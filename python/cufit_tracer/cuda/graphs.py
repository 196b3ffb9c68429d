# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs."""


# What is captured runs once, as it stands. The graph's pool keeps what the capture took at most: it
# is held as a block of that size.
def patch_graphs(tracer):
    torch = tracer.torch

    class CUDAGraph:
        def __init__(self, *args, **kwargs):
            self.held = None

        def capture_begin(self, *args, **kwargs):
            tracer.capturing = True
            self.before, tracer.peak = tracer.peak, tracer.allocated
            tracer.file.note(
                "assumed",
                "a CUDA graph's own pool is taken for a block of the size that the capture needed",
                tracer.source(),
            )

        def capture_end(self):
            tracer.capturing = False
            lacking = tracer.peak - tracer.allocated
            tracer.peak = max(tracer.peak, self.before)
            if lacking > 0:
                self.held = torch.empty(lacking, dtype=torch.uint8, device="cuda")

        def replay(self):
            if tracer.after.began and not tracer.after.running:
                tracer.after.leave()

        def reset(self):
            self.held = None

        def pool(self):
            return 0, 1

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return lambda *args, **kwargs: None

    graphs = torch.cuda.graphs
    torch.cuda.CUDAGraph = graphs.CUDAGraph = CUDAGraph
    torch.cuda.graph_pool_handle = graphs.graph_pool_handle = lambda: (0, 1)
