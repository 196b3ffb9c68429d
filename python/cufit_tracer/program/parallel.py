# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel's reducer measures itself with the driver's events. In its place stand
the buckets that it keeps: at first one of all gradients, after the first backward (in the order of
the parameters, from the last) as bucket_cap_mb says. With gradient_as_bucket_view=True a gradient
that is ready is copied into its bucket and is a part of it from then on.

NCCL keeps what it was given until its watchdog, which looks every 100 ms, has seen that it is done,
and drops it in its next call (ProcessGroupNCCL.cpp, `shelvesToUnstash_`, torch 2.8 to 2.11). So the
one bucket of the first backward may live on beside its followers. Which it is, is a matter of
milliseconds: it did on 18 of 18 ranks of two H200, and on one of ten of two H100. Where the graph
is said to be static, so that the second step goes before, it did on all four. That alone is
followed here; the upper value has room for the copy in any case (fact "ddp_buckets")."""

import sys

from ..event_file import COMMUNICATION
from .comm_hooks import GradBucket, sent_by, tell_that_a_hook_is_not_counted


class Nothing:
    """Has every method, and none does anything."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


class Bucket:
    """Gradients that travel together: the places of their parameters and the tensor they lie in."""

    def __init__(self, places, tensor):
        self.places, self.tensor = places, tensor
        self.awaited = set()
        self.result = None  # of the communication hook, until that of the next backward


def reducer_class(tracer):
    torch = tracer.torch

    class Reducer(Nothing):
        def __init__(self, owner, parameters, sparse):
            self.owner, self.parameters, self.sparse = owner, parameters, sparse
            self.backwards = 0  # that bring gradients together
            self.is_rebuilt = False
            self.hook = None  # with its state
            self.sent = []  # what NCCL keeps
            self.views = {}  # by the place of a parameter
            self.bucket_of = {}  # by the place of a parameter
            self.as_views = bool(getattr(owner, "gradient_as_bucket_view", False))
            for place, parameter in enumerate(self.parameters):
                parameter.register_post_accumulate_grad_hook(self.ready(place))
            self.rebuild([sys.maxsize])

        def ready(self, place):
            def hook(parameter):
                bucket = self.bucket_of.get(place)
                if bucket is None or place not in bucket.awaited:
                    return
                bucket.awaited.discard(place)
                view, gradient = self.views.get(place), parameter.grad
                if view is not None and gradient is not None and gradient is not view:
                    with torch.no_grad():
                        view.copy_(gradient)
                    parameter.grad = view
                if not bucket.awaited:
                    self.send(bucket)

            return hook

        # Of a forward pass under no_sync() nothing is told: the gradients behind it stay apart.
        def prepare_for_backward(self, *args):
            self.backwards += 1
            self.first = True
            for bucket in self.buckets:
                bucket.awaited = set(bucket.places)

        def send(self, bucket):
            if self.hook is None:
                self.keep(bucket.tensor)
                return
            parameters = [self.parameters[place] for place in bucket.places]
            told = GradBucket(self.buckets.index(bucket), bucket.tensor, parameters)
            told.last = bucket is self.buckets[-1]
            bucket.result = sent_by(tracer, self.hook, told, self.keep)

        def keep(self, tensor):
            if self.first:
                self.sent, self.first = [], False
            self.sent.append(tensor)

        def rebuild(self, limits):
            self.buckets, self.views, self.bucket_of = [], {}, {}
            last = len(self.parameters) - 1
            tensors, sparse = self.parameters[::-1], self.sparse[::-1]
            groups = torch.distributed._compute_bucket_assignment_by_size(tensors, limits, sparse)
            groups = groups[0] if isinstance(groups, tuple) else groups
            # Sparse gradients, each alone in its group, have no bucket.
            for group in groups:
                if not any(sparse[i] for i in group):
                    tensor = self.empty([tensors[i] for i in group])
                    self.buckets.append(Bucket([last - i for i in group], tensor))
            if torch.distributed.get_world_size() > 1:
                held = sum(b.tensor.numel() * b.tensor.element_size() for b in self.buckets)
                tracer.file.fact("ddp_buckets", held)
            for bucket in self.buckets:
                tracer.categorise(bucket.tensor, COMMUNICATION)
                self.bucket_of.update(dict.fromkeys(bucket.places, bucket))
                if self.as_views:
                    self.view(bucket)

        def view(self, bucket):
            at = 0
            for place in bucket.places:
                parameter = self.parameters[place]
                part = bucket.tensor[at : at + parameter.numel()]
                self.views[place] = part.view(parameter.shape)
                at += parameter.numel()

        def empty(self, tensors):
            size = sum(t.numel() for t in tensors)
            return torch.empty(size, dtype=tensors[0].dtype, device=tensors[0].device)

        # Before the forward pass behind the first backward that brought gradients together; of a
        # graph that is said to be static, behind the second.
        def _rebuild_buckets(self):
            static = getattr(self.owner, "static_graph", False)
            if self.is_rebuilt or self.backwards < (2 if static else 1):
                return False
            self.is_rebuilt = True
            if not static:
                self.sent = []
            self.rebuild(
                [torch.distributed._DEFAULT_FIRST_BUCKET_BYTES, self.owner.bucket_bytes_cap]
            )
            return True

    return Reducer


def patch_parallel(tracer):
    from torch.nn.parallel import distributed as parallel

    Reducer = reducer_class(tracer)

    def helper(self, parameters, expect_sparse_gradient, *args, **kwargs):
        said = "its gradient buckets are counted in the order of the parameters"
        tracer.file.note("assumed", "DistributedDataParallel: " + said, tracer.source())
        self.reducer = Reducer(self, list(parameters), list(expect_sparse_gradient))
        self.logger = Nothing()
        self.require_backward_grad_sync = True

    def hooked(reducer, state, hook):
        reducer.hook = (hook, state)

    # PyTorch's own in C++ make a compressed copy of one bucket for a moment.
    def built_in(*args):
        tell_that_a_hook_is_not_counted(tracer)

    tracer.torch.distributed._register_comm_hook = hooked
    tracer.torch.distributed._register_builtin_comm_hook = built_in
    parallel._verify_param_shape_across_processes = lambda *args, **kwargs: None
    parallel._sync_module_states = lambda *args, **kwargs: None
    parallel.DistributedDataParallel._ddp_init_helper = helper
