# SPDX-License-Identifier: Apache-2.0
"""Communication hooks of DistributedDataParallel: they run as they are. What they are given, and
what a collective gives them, stand in for objects of PyTorch that are made in C++ alone."""


class GradBucket:
    def __init__(self, index, tensor, parameters):
        self.at, self.tensor, self.of, self.last = index, tensor, parameters, False

    def index(self):
        return self.at

    def buffer(self):
        return self.tensor

    def set_buffer(self, tensor):
        self.tensor = tensor

    def parameters(self):
        return self.of

    def is_last(self):
        return self.last

    def gradients(self):
        out, at = [], 0
        for parameter in self.of:
            out.append(self.tensor[at : at + parameter.numel()].view(parameter.shape))
            at += parameter.numel()
        return out


class Future:
    """Of a collective: done, and holding what it was given."""

    def __init__(self, held):
        self.held = held

    def value(self):
        return self.held

    wait = value

    def done(self):
        return True

    def then(self, call):
        return Future(call(self))

    def add_done_callback(self, call):
        call(self)


class Sent:
    """The work of a collective."""

    def __init__(self, work, tensors):
        self.work, self.tensors = work, tensors

    def get_future(self):
        return Future(self.tensors)

    def wait(self, *args, **kwargs):
        return True

    def __getattr__(self, name):
        return getattr(self.work, name)


def tell_that_a_hook_is_not_counted(tracer):
    said = "what its communication hook makes is not counted"
    tracer.file.note("assumed", "DistributedDataParallel: " + said, tracer.source())


# Runs a hook. Each tensor that it sends meanwhile is told to `keep`. What it returned is kept by
# its bucket.
def sent_by(tracer, hook, bucket, keep):
    import torch.distributed as dist

    function, state = hook

    def told(real):
        def run(*args, **kwargs):
            work = real(*args, **kwargs)
            first = args[0] if args else kwargs.get("tensor", kwargs.get("tensor_list"))
            tensors = list(first) if isinstance(first, (list, tuple)) else [first]
            for tensor in tensors:
                keep(tensor)
            return work and Sent(work, tensors)

        return run

    before = {name: getattr(dist, name) for name in ("all_reduce", "all_gather")}
    try:
        for name, real in before.items():
            setattr(dist, name, told(real))
        with tracer.torch.no_grad():
            return function(state, bucket)
    except Exception:
        tell_that_a_hook_is_not_counted(tracer)
        return None
    finally:
        for name, real in before.items():
            setattr(dist, name, real)
