# SPDX-License-Identifier: Apache-2.0
"""Evaluation before the first step."""

import weakref

from ..tensors import dense


# Some programs evaluate before they train (nanoGPT: 400 batches, a loop without a DataLoader). A
# model that takes inputs of the same shapes over and over asks for the same memory each time: after
# a few times it is given results like the last ones.
class Repeats:
    TIMES = 3
    PLAIN = (type(None), bool, int, float, str)

    def __init__(self, tracer):
        self.tracer = tracer
        self.watched = weakref.WeakKeyDictionary()  # module: its ForwardAgain
        self.done = False

    # Before a module's forward that no other calls, where no gradients are wanted.
    def evaluates(self, module):
        if (
            self.done
            or module in self.watched
            or type(module).__module__.startswith("torch._dynamo")
        ):
            return
        if not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules()):
            self.watched[module] = ForwardAgain(self, module)

    def trains(self):
        if not self.done:
            self.done = True
            self.leave()

    # As they were, for good.
    def leave(self):
        for repeated in list(self.watched.values()):
            repeated.leave()


class ForwardAgain:
    """The forward of a module from its second call on."""

    def __init__(self, repeats, module):
        self.repeats, self.module = repeats, weakref.ref(module)
        self.own = module.__dict__.get("forward")
        self.forward = self.__wrapped__ = (
            module.forward
        )  # who asks for its signature is told that one
        self.grows = False  # it keeps more than it gives
        self.seen = {}  # by the shapes that were given: how often, what came out the last time
        module.__dict__["forward"] = self

    def leave(self):
        module = self.module()
        if module is not None and module.__dict__.get("forward") is self:
            del module.__dict__["forward"]
            if self.own is not None:
                module.__dict__["forward"] = self.own

    def __deepcopy__(self, memo):
        copied = memo.get(id(self.module()))
        return self.forward if copied is None else type(copied).forward.__get__(copied)

    def __call__(self, *args, **kwargs):
        tracer, torch = self.repeats.tracer, self.repeats.tracer.torch
        module = self.module()
        if (
            self.grows
            or self.repeats.done
            or torch.is_grad_enabled()
            or module is None
            or module.training
            or tracer.compiling
        ):
            return self.forward(*args, **kwargs)
        import torch.utils._pytree as pytree

        given, form = pytree.tree_flatten((args, kwargs))
        if not all(
            type(value) in Repeats.PLAIN or type(value) is tracer.FakeTensor for value in given
        ):
            return self.forward(*args, **kwargs)
        plain = tuple(
            value
            for part in module.modules()
            for value in vars(part).values()
            if type(value) in Repeats.PLAIN
        )
        key = (
            str(form),
            torch.is_autocast_enabled("cuda"),
            plain,
            tuple(self.shape(value) for value in given),
        )
        times, last, out_form = self.seen.get(key, (0, None, None))
        if times >= Repeats.TIMES and last is not None:
            return pytree.tree_unflatten([self.again(value) for value in last], out_form)
        first, before = tracer.file.storages, tracer.allocated
        out = self.forward(*args, **kwargs)
        flat, out_form = pytree.tree_flatten(out)
        gives = sum(
            value.numel() * value.element_size()
            for value in flat
            if isinstance(value, torch.Tensor)
        )
        self.grows = times > 0 and tracer.allocated - before > gives
        self.seen[key] = (
            times + 1,
            [self.shape(value) for value in flat] if self.alone(flat, first) else None,
            out_form,
        )
        return out

    def shape(self, value):
        if not isinstance(value, self.repeats.tracer.torch.Tensor):
            return type(value), value
        return tuple(value.shape), value.stride(), value.dtype, value.device

    # Whether each of these is plain, or a new tensor that has its memory for itself.
    def alone(self, values, first):
        tracer = self.repeats.tracer
        held = set()
        for value in values:
            if type(value) in Repeats.PLAIN:
                continue
            if type(value) is not tracer.FakeTensor or not dense(value):
                return False
            storage = value.untyped_storage()
            if (
                storage.nbytes() != value.numel() * value.element_size()
                or tracer.storages.get(storage, -1) < first
                or storage._cdata in held
            ):
                return False
            held.add(storage._cdata)
        return True

    def again(self, value):
        if len(value) == 2:
            return value[1]
        shape, stride, dtype, device = value
        return self.repeats.tracer.torch.empty_strided(shape, stride, dtype=dtype, device=device)
