# SPDX-License-Identifier: Apache-2.0
"""How many there are of each of some values, where nobody has the values: as many of each. So
tokens go to experts. Where a program reads such a count, this is told."""

SAID = "how many of each value there are (tokens of each expert) depends on values: as many of each"


def spread(torch, total, bins, dtype=None):
    counts = torch.full((bins,), total // max(bins, 1), dtype=torch.int64)
    counts[: total % max(bins, 1)] += 1
    return even(counts.to(dtype or torch.int64))


def even(counts):
    counts._cufit_even = True
    return counts


def is_even(value):
    return getattr(value, "_cufit_even", False)


def tell_even(tracer, value):
    if is_even(value):
        tracer.file.note("assumed", SAID, tracer.source())


class EvenCounts:
    def __init__(self, tracer, shadows):
        self.torch, self.shadows = tracer.torch, shadows
        aten = tracer.torch.ops.aten
        self.to, self.marking = aten._to_copy.default, (aten.scatter_.value, aten.scatter.value)
        self.counting = {
            aten.histc.default: self.of_numbers,
            aten.scatter_add_.default: self.added,
            aten.scatter_add.default: self.added,
            aten.sum.dim_IntList: self.marked,
        }

    # The counts, or None.
    def of(self, func, args):
        return self.counting[func](*args) if func in self.counting else None

    def of_numbers(self, x, bins=100, *more):
        return spread(self.torch, x.numel(), bins, x.dtype)

    # Ones added to zeros.
    def added(self, into, dim, index, ones):
        before, added = self.shadows.of(into), self.shadows.of(ones)
        if before is None or added is None or into.dim() != 1:
            return None
        if bool((before != 0).any()) or bool((added != 1).any()):
            return None
        return spread(self.torch, added.numel(), into.numel(), into.dtype)

    # Of each value the place is marked (one_hot) and all marks are added.
    def marked(self, x, dims=None, *more):
        marks = getattr(x, "_cufit_marks", None)
        if marks is None or sorted(d % x.dim() for d in dims or ()) != list(range(x.dim() - 1)):
            return None
        return spread(self.torch, marks, x.shape[-1])

    def keep_marks(self, func, args, out):
        if func in self.marking and args[1] in (-1, args[0].dim() - 1) and args[3] == 1:
            out._cufit_marks = args[2].numel()
        elif func is self.to and hasattr(args[0], "_cufit_marks"):
            out._cufit_marks = args[0]._cufit_marks
