# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel's reducer measures itself with the driver's events. In its place stand
the buckets that it keeps: at first one of all gradients, after the first backward (in the order of
the parameters, from the last) as bucket_cap_mb says. With gradient_as_bucket_view=True a gradient
that is ready is copied into its bucket and is a part of it from then on."""

import sys

from ..event_file import COMMUNICATION


class Nothing:
    """Has every method, and none does anything."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def reducer_class(tracer):
    torch = tracer.torch

    class Reducer(Nothing):
        def __init__(self, owner, parameters, sparse):
            self.owner, self.parameters, self.sparse = owner, parameters, sparse
            self.passes = 0
            self.awaited = set()  # places of parameters whose gradients this backward brings
            self.views = {}  # by the place of a parameter
            self.as_views = bool(getattr(owner, "gradient_as_bucket_view", False))
            if self.as_views:
                for place, parameter in enumerate(self.parameters):
                    parameter.register_post_accumulate_grad_hook(self.ready(place))
            self.buckets = self.rebuilt([sys.maxsize])

        def ready(self, place):
            def hook(parameter):
                if place not in self.awaited:
                    return
                self.awaited.discard(place)
                view, gradient = self.views.get(place), parameter.grad
                if view is None or gradient is None or gradient is view:
                    return
                with torch.no_grad():
                    view.copy_(gradient)
                parameter.grad = view

            return hook

        # Of a forward pass under no_sync() nothing is told: the gradients behind it stay apart.
        def prepare_for_backward(self, *args):
            self.awaited = set(range(len(self.parameters)))

        def rebuilt(self, limits):
            self.buckets, self.views = None, {}
            tensors, sparse = self.parameters[::-1], self.sparse[::-1]
            groups = torch.distributed._compute_bucket_assignment_by_size(tensors, limits, sparse)
            groups = groups[0] if isinstance(groups, tuple) else groups
            # Sparse gradients, each alone in its group, have no bucket.
            groups = [group for group in groups if not any(sparse[i] for i in group)]
            buckets = [self.bucket([tensors[i] for i in group]) for group in groups]
            if torch.distributed.get_world_size() > 1:
                held = sum(bucket.numel() * bucket.element_size() for bucket in buckets)
                tracer.file.fact("ddp_buckets", held)
            for bucket, group in zip(buckets, groups):
                tracer.categorise(bucket, COMMUNICATION)
                if self.as_views:
                    self.view(bucket, group)
            return buckets

        def view(self, bucket, group):
            at = 0
            for place in group:
                place = len(self.parameters) - 1 - place
                parameter = self.parameters[place]
                part = bucket[at : at + parameter.numel()]
                self.views[place] = part.view(parameter.shape)
                at += parameter.numel()

        def bucket(self, tensors):
            size = sum(t.numel() for t in tensors)
            return torch.empty(size, dtype=tensors[0].dtype, device=tensors[0].device)

        def _rebuild_buckets(self):
            self.passes += 1
            if self.passes == 2:
                self.buckets = self.rebuilt(
                    [torch.distributed._DEFAULT_FIRST_BUCKET_BYTES, self.owner.bucket_bytes_cap]
                )
            return self.passes == 2

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return lambda *args, **kwargs: None

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

    # A hook makes a compressed copy of one bucket for a moment: the upper value has room for all of
    # them (fact "ddp_buckets").
    def hooked(*args):
        said = "what its communication hook makes is not counted"
        tracer.file.note("assumed", "DistributedDataParallel: " + said, tracer.source())

    for name in ("_register_comm_hook", "_register_builtin_comm_hook"):
        setattr(tracer.torch.distributed, name, hooked)
    parallel._verify_param_shape_across_processes = lambda *args, **kwargs: None
    parallel._sync_module_states = lambda *args, **kwargs: None
    parallel.DistributedDataParallel._ddp_init_helper = helper
