# SPDX-License-Identifier: Apache-2.0
"""Values of small tensors, which are kept on the CPU beside the tensors without contents."""

import operator
from contextlib import nullcontext

from ..program.assertions import Assertions
from .even_counts import even, is_even, tell_even


class Shadows:
    def __init__(self, tracer):
        import torch.utils._pytree as pytree

        self.tracer, self.torch, self.pytree = tracer, tracer.torch, pytree
        self.FakeTensor = tracer.FakeTensor
        self.assertions = Assertions()
        self.kept = tracer.shadows
        self.as_device_draws = OtherDraws(tracer.torch)
        aten = self.aten = tracer.torch.ops.aten
        self.verdicts = {aten.isnan.default: 0, aten.isinf.default: 0, aten.isfinite.default: 1}
        self.itself = {aten.eq.Tensor: True, aten.ne.Tensor: False}
        self.compares = {
            getattr(aten, name).Scalar: getattr(operator, name) for name in ("lt", "le", "gt", "ge")
        }
        # Of tensors whose elements are all alike.
        self.logical = {
            aten.logical_not.default,
            aten.bitwise_not.default,
            *(getattr(aten, "logical_" + name).default for name in ("or", "and")),
            *(getattr(aten, "bitwise_" + name).Tensor for name in ("or", "and")),
        }
        self.carries = self.logical | {
            aten.any.default,
            aten.all.default,
            aten.max.default,
            aten.min.default,
            aten.amax.default,
            aten.amin.default,
            aten._to_copy.default,
        }
        # What is true or something is true, what is false and something is false.
        self.settling = {
            aten.bitwise_or.Tensor: True,
            aten.bitwise_and.Tensor: False,
            aten.logical_or.default: True,
            aten.logical_and.default: False,
        }

    def of(self, tensor):
        return self.kept.get(tensor) if isinstance(tensor, self.FakeTensor) else tensor

    # The same operator over the values, where every tensor has some and they are few.
    def call(self, func, args, kwargs, tensors):
        torch, most = self.torch, self.tracer.SHADOW_ELEMENTS
        total = 0
        for tensor in tensors:
            value = self.of(tensor)
            if value is None:
                return None
            total += value.numel()
        if total > most:
            return None
        if not tensors:
            product = 1
            for size in self.pytree.tree_leaves(args):
                if isinstance(size, int):
                    product *= max(size, 1)
            if product > most:
                return None
        drawn = torch.Tag.nondeterministic_seeded in func.tags
        try:
            args, kwargs = self.pytree.tree_map_only(torch.Tensor, self.of, (args, kwargs))
            with self.as_device_draws if drawn else nullcontext():
                out = func(*args, **without_device(torch, kwargs))
        except Exception:
            return None
        if any(is_even(self.of(tensor)) for tensor in tensors):
            self.pytree.tree_map_only(torch.Tensor, even, out)
        return out

    def settles(self, func):
        return func in self.settling

    def settled(self, func, args, out):
        torch, settles = self.torch, self.settling[func]
        for operand in args[:2]:
            value = self.of(operand) if isinstance(operand, torch.Tensor) else None
            if value is None or not value.numel() or not (value.dtype == torch.bool or not settles):
                continue
            if bool((value != 0).all() if settles else (value == 0).all()):
                return torch.full(tuple(out.shape), settles, dtype=out.dtype)
        return None

    def pair(self, out, values):
        flat, flat_values = self.pytree.tree_leaves(out), self.pytree.tree_leaves(values)
        if len(flat) != len(flat_values):
            return
        for tensor, value in zip(flat, flat_values):
            if isinstance(tensor, self.FakeTensor) and isinstance(value, self.torch.Tensor):
                if tensor.shape == value.shape:
                    self.kept[tensor] = value

    # Of what the operator writes into, and of the whole where that is a part.
    def forget(self, func, args):
        for argument, value in zip(func._schema.arguments, args):
            if argument.alias_info is not None and argument.alias_info.is_write:
                for tensor in self.pytree.tree_leaves(value):
                    if isinstance(tensor, self.FakeTensor):
                        for written in (tensor, tensor._base):
                            if written in self.kept:
                                del self.kept[written]

    # What is to be given where the result is read, of which no value is known.
    def guess(self, func, args, tensors, out):
        torch = self.torch
        if func in self.verdicts:
            self.agree(out, bool(self.verdicts[func]))
        elif func in self.carries and tensors and self.agreed(func, args, tensors, out):
            return
        elif func in self.itself and args[0] is args[1]:  # is it a number
            out._cufit_verdict = self.itself[func]
        elif func in self.compares and out.numel() == 1 and verdict_of(args[0]) is None:
            out._cufit_verdict, out._cufit_compared = self.compares[func](1, args[1]), True
        elif func is self.aten.any.default and args[0].dtype.is_floating_point:
            out._cufit_verdict = out._cufit_compared = True  # some number is not zero
        elif tensors and out.dtype == torch.bool and out.numel() == 1:
            hint = verdict_of(tensors[0])
            if hint is not None:
                inverts = func is self.aten.logical_not.default
                out._cufit_verdict = (not hint) if inverts else hint

    # One value of all elements: kept where they are few.
    def agree(self, out, value):
        if out.numel() <= self.tracer.SHADOW_FLOATS:
            self.kept[out] = self.torch.full(tuple(out.shape), value, dtype=out.dtype)
        else:
            out._cufit_verdict = value

    # Whether infinity is in some tensors, or no number: what is asked of all of their elements is
    # asked of one.
    def agreed(self, func, args, tensors, out):
        torch, ones = self.torch, {}
        for tensor in tensors:
            hint, value = verdict_of(tensor), self.of(tensor)
            if value is not None and value.numel() == 1 and not value.is_meta:
                hint = value.item()
            if hint is None or getattr(tensor, "_cufit_compared", False):
                return False
            ones[id(tensor)] = torch.tensor(hint, dtype=tensor.dtype)
        if func in self.logical:
            given = [ones.get(id(value), value) for value in args]
            self.agree(out, func(*given).item())
        else:
            self.agree(out, ones[id(tensors[0])].to(out.dtype).item())
        return True

    def value_of(self, func, tensor):
        tracer, torch = self.tracer, self.torch
        value = self.kept.get(tensor)
        if value is not None and value.numel() == 1:
            tell_even(tracer, value)
            return func(value)
        held = self.assertions.wanted() if tensor.dtype == torch.bool else None
        if held is not None:
            return held
        hint = verdict_of(tensor)
        if hint is not None and getattr(tensor, "_cufit_compared", False):
            # A loop that waits for it would wait for ever.
            place = tracer.source()
            tracer.compared[place] = tracer.compared.get(place, 0) + 1
            hint = hint if tracer.compared[place] <= tracer.MOST_COMPARED else not hint
            self.tell_read(tensor, hint, place)
        if hint is not None:
            return hint
        if tracer.valid and tensor.dtype == torch.bool:
            return True
        floats = tensor.dtype.is_floating_point
        stand_in = False if tensor.dtype == torch.bool else 1.0 if floats else 1
        self.tell_read(tensor, stand_in, tracer.source())
        return stand_in

    def tell_read(self, tensor, given, place):
        said = "%s value read; %s was given" % (str(tensor.dtype)[6:], given)
        self.tracer.file.note("data_dependent", said, place)


class OtherDraws:
    """What a GPU draws leaves the generator of the CPU as it is."""

    def __init__(self, torch):
        self.generator = torch.default_generator
        self.own = torch.Generator().manual_seed(0).get_state()

    def __enter__(self):
        self.of_program = self.generator.get_state()
        self.generator.set_state(self.own)

    def __exit__(self, *error):
        self.own = self.generator.get_state()
        self.generator.set_state(self.of_program)


def verdict_of(tensor):
    return getattr(tensor, "_cufit_verdict", None)


def without_device(torch, kwargs):
    out = dict(kwargs)
    if "device" in out:
        out["device"] = torch.device("cpu")
    out.pop("non_blocking", None)
    return out
