# SPDX-License-Identifier: Apache-2.0
"""Sizes of the batches."""

import sys

from ..tensors import elements, tensors_of_batch
from .drawn_sizes import draws_later


class BatchShapes:
    MORE_OPERATORS = 200000  # and three times those of the steps
    # The same of steps by which no later batch can be reckoned; as many alike are enough for that.
    UNALIKE_OPERATORS, LEAST_ALIKE = 80000, 5

    # A batch of a DataLoader with its sequences at the length that was asked for: rows of whole
    # numbers (tokens, masks, labels) of one common length, repeated or cut. Tells the length that
    # it had, and whether it varied.
    def lengths(self, place):
        torch = self.torch
        wanted = self.wanted["SEQ"]

        def each(value, do):
            if isinstance(value, torch.Tensor):
                whole = (
                    value.dim() == 2
                    and value.shape[1] > 1
                    and not value.is_floating_point()
                    and not value.is_complex()
                )
                return do(value) if whole else value
            if hasattr(value, "keys") and hasattr(value, "__setitem__"):
                for key in list(value.keys()):
                    value[key] = each(value[key], do)
                return value
            if type(value) in (list, tuple):
                return type(value)(each(item, do) for item in value)
            return value

        def resized(batch):
            seen = []
            each(batch, lambda rows: (seen.append(rows.shape[1]), rows)[1])
            if not seen:
                return batch
            length = max(set(seen), key=seen.count)
            if self.sequences is None:
                self.sequences = (length, length)
                self.file.fact("seq_found", length)
                self.file.fact("seq_from", place)
            elif not wanted:
                self.sequences = min(self.sequences[0], length), max(self.sequences[1], length)
            if wanted and length != wanted:
                at = torch.arange(wanted) % length
                batch = each(batch, lambda rows: rows[:, at] if rows.shape[1] == length else rows)
            return batch

        return resized

    # Of the outermost module that is given tensors.
    def shows(self, module, values):
        if self.shown or not module.training:
            return
        for place, value in enumerate(values):
            for tensor in tensors_of_batch(self.torch, value):
                self.shown = len(self.modules) + 1
                key, shape = (id(module), place, tensor.dim()), tuple(tensor.shape)
                if elements(shape) >= elements(self.given.get(key, (0,))):
                    self.given[key] = shape

    def keep_shapes(self):
        for key, shape in self.given.items():
            self.shapes.setdefault(key, set()).add(shape)
        self.given = {}

    # Where the steps were not of one size, so that more of them may show a larger one: up to a
    # number and a bound of their work. Whether sizes differ decides, never how much, so that the
    # program is as long at every batch size.
    def goes_on(self):
        if all(len(shapes) == 1 for shapes in self.shapes.values()):
            if self.drawn is None:
                self.drawn = draws_later(sys._getframe(1))
            if not self.drawn:
                return False
        if self.steps >= self.wanted["MOST_STEPS"]:
            return self.goes_on_unalike()
        if self.until is None:
            self.until = 4 * self.operators - 3 * self.began + self.MORE_OPERATORS
        return self.operators < self.until

    # Later batches become steps where several steps did the same at other sizes
    # (src/fit/later_batches.h). Where none did (packed sequences take memory by their lengths), or
    # where a batch is too much to tell, more steps are traced in their place.
    def goes_on_unalike(self):
        alike = max(self.acts.count(acts) for acts in self.acts)
        if self.steps >= self.wanted["UNALIKE_STEPS"] or (
            self.after.later.can_tell() and alike >= self.LEAST_ALIKE
        ):
            return False
        if self.until_unalike is None:
            self.until_unalike = self.operators + self.UNALIKE_OPERATORS
        return self.operators < self.until_unalike

    # What a step asked for and told, as a number of each.
    def keep_acts(self):
        storages, calls = self.file.storages, self.file.calls
        self.acts.append((storages - self.acts_before[0], calls - self.acts_before[1]))
        self.acts_before = storages, calls

    def tell_lengths(self):
        vary = [shapes for shapes in self.shapes.values() if len(shapes) > 1]
        if vary:
            ends = sorted(vary[0], key=elements)
            self.file.note(
                "sizes_vary",
                ", ".join(" x ".join(map(str, shape)) for shape in (ends[0], ends[-1])),
                "",
            )
        elif self.sequences and self.sequences[0] != self.sequences[1]:
            said = "the sequences of the batches were of %d to %d tokens; --seq N answers for one "
            self.file.note("assumed", (said + "length") % self.sequences, "")

    # The first DataLoader need not be the one that trains.
    def tell_training_loader(self):
        self.after.forget_evaluated()
        loader = self.after.training_loader()
        made = getattr(loader, "_cufit_made", None)
        # No batch of it is larger, whatever size is asked for.
        samples, batch = (getattr(loader, name, None) for name in ("_cufit_epoch", "_cufit_batch"))
        if samples and batch:
            self.file.fact("samples", samples)
            self.file.fact("samples_in_batches_of", batch)
        self.trained_with = made and made[0]
        if made and made[0] != self.batch_found:
            self.batch_found = made[0]
            self.file.fact("batch_found", made[0])
            self.file.fact("batch_from", "DataLoader %s" % made[1])
            if not self.wanted["BATCH"]:
                self.file.fact("batch", made[0])
