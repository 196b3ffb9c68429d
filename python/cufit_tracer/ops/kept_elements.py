# SPDX-License-Identifier: Apache-2.0
"""Operators whose number of results nothing but values tells: all elements are kept."""

from .unique import UNIQUE, all_distinct


class KeptElements:
    def __init__(self, tracer, shadows):
        self.tracer, self.torch, self.fake = tracer, tracer.torch, tracer.fake
        self.shadows, aten = shadows, tracer.torch.ops.aten
        self.aten, self.puts = aten, {aten.index_put_.default, aten.index_put.default}

    # What is written where one mask holds has so many rows as the mask holds: its backward pass
    # asks for these rows.
    def saw(self, func, args):
        if func not in self.puts:
            return
        given = [(at, index) for at, index in enumerate(args[1]) if index is not None]
        if len(given) != 1 or given[0][1].dtype not in (self.torch.bool, self.torch.uint8):
            return
        (at, mask), rows = given[0], args[2]
        if rows.dim() == args[0].dim() - mask.dim() + 1 and rows.shape[at] != 1:
            mask._cufit_holds = rows.shape[at], version(mask)

    # What the operator returns: the result, or values for it. None: not known.
    def with_all(self, func, args, kwargs):
        torch, aten, name = self.torch, self.aten, func._schema.name
        if func is aten.nonzero.default:
            return self.places(func, args[0])
        if name == "torchvision::nms":
            self.tell_kept(func)
            return torch.arange(args[0].shape[0])
        if func is aten.masked_select.default:
            whole = torch.broadcast_shapes(args[0].shape, args[1].shape).numel()
            count = len(self.places(func, args[1])) * whole // max(args[1].numel(), 1)
            with self.fake:
                return torch.empty(count, dtype=args[0].dtype, device="cuda")
        if name in UNIQUE:
            self.tell_kept(func)
            with self.fake:
                return all_distinct(torch, name, *args, **kwargs)
        if func is aten.index.Tensor:
            return self.indexed(func, *args)
        return None

    def indexed(self, func, of, given):
        torch, fake = self.torch, self.fake
        indices = []
        for index in given:
            mask = index is not None and index.dtype in (torch.bool, torch.uint8)
            indices += self.places(func, index).unbind(1) if mask else [index]

        def on_gpu(index):
            real = type(index) is torch.Tensor
            return fake.from_tensor(index).to("cuda") if real else index

        with fake:
            return func(of, [on_gpu(index) for index in indices])

    def tell_kept(self, func):
        name = func._schema.name.split("::")[1]
        said = "how many elements %s keeps depends on values: all were kept" % name
        self.tracer.file.note("assumed", said, self.tracer.source())

    # Where the mask holds.
    def places(self, func, mask):
        torch = self.torch
        value = self.shadows.of(mask)
        if value is not None:
            return torch.nonzero(value)
        holds, of_version = getattr(mask, "_cufit_holds", (None, None))
        if holds is None or of_version != version(mask):
            self.tell_kept(func)
            holds = 0 if none_holds(mask) else mask.numel()
        if mask.numel() <= self.tracer.SHADOW_ELEMENTS:
            return torch.nonzero(torch.ones(mask.shape, dtype=torch.bool))[:holds]
        if holds == 0:
            return torch.zeros((0, mask.dim()), dtype=torch.int64)
        with self.fake:
            return torch.empty(
                (min(holds, mask.numel()), mask.dim()), dtype=torch.int64, device="cuda"
            )


# What is written into a tensor or a view of it makes another. Made in inference mode it has none.
def version(mask):
    return None if mask.is_inference() else mask._version


# How many of a mask without values hold: all; of those that ask which elements equal a number, the
# first that asks, so that the parts of a whole are together no more than the whole.
def none_holds(mask):
    of, number = getattr(mask, "_cufit_equals", (None, None))
    whole = of() if of is not None else None
    if whole is None:
        return False
    first = getattr(whole, "_cufit_first", None)
    if first is None:
        first = whole._cufit_first = number
    return first != number
