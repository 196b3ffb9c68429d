# SPDX-License-Identifier: Apache-2.0
"""Iterators of DataLoaders, and how many batches of each the program has."""

import weakref

from ..event_file import FORWARD


# What is known of one iteration over a DataLoader.
class Seen:
    def __init__(self, forwards):
        self.at = []  # before each batch: bytes allocated, storages so far
        self.forwards = forwards
        self.first = {}  # what the first batch left until the second, by number
        self.ahead = self.over = self.trains = False


class Iterators:
    def made(self, iterator, loader):
        iterator._cufit_loader = weakref.ref(loader)
        iterator._cufit_from = tuple(
            getattr(loader, name, None)
            for name in ("_cufit_order", "_cufit_samples", "_cufit_batch")
        )
        if not self.began and self.tracer.evaluates():
            self.keep_samples(iterator, loader)
        if self.began:
            self.begins(iterator)
            self.tell_other_batch(loader)
            if self.tracer.phase == FORWARD:  # of a training step that no optimizer ends
                self.rest()

    # What is loaded behind the steps may have a batch size of its own.
    def tell_other_batch(self, loader):
        batch = getattr(loader, "_cufit_made", (None, ""))
        given = getattr(loader, "_cufit_batch", None)
        if batch[0] and self.tracer.wanted["BATCH"] not in (None, given):
            said = "after the steps batches of %d are loaded, whatever the batch size of the steps "
            said = (said + "is; with `--batch-arg` the program sets both") % batch[0]
            self.tracer.file.note("assumed", said, batch[1])

    def begins(self, iterator):
        self.join_last()
        self.own[iterator] = Seen(self.forwards)
        self.keep_small(iterator, iterator._cufit_loader())
        self.restarted = True

    # Data that would not fill a batch was repeated for the steps' sake (loaders.py).
    def keep_small(self, iterator, loader):
        samples, batch = (
            getattr(loader, "_cufit_samples", None),
            getattr(loader, "_cufit_batch", None),
        )
        if not samples or not batch or samples >= batch or not hasattr(iterator, "_sampler_iter"):
            return
        if getattr(loader, "drop_last", False):
            self.own[iterator].over = True
        else:
            whole = iterator._sampler_iter
            iterator._sampler_iter = (
                indices[:samples] if isinstance(indices, list) else indices for indices in whole
            )

    # The same of data that was repeated for steps and feeds none: so many batches as the program
    # has.
    def keep_samples(self, iterator, loader):
        samples, batch = (
            getattr(loader, "_cufit_samples", None),
            getattr(loader, "_cufit_batch", None),
        )
        if not samples or not batch or not hasattr(iterator, "_sampler_iter"):
            return
        whole = iterator._sampler_iter

        def kept():
            left = samples
            for indices in whole:
                if (
                    not isinstance(indices, list)
                    or left < len(indices)
                    and getattr(loader, "drop_last", False)
                ):
                    return
                yield indices[:left]
                left -= len(indices)
                if left <= 0:
                    return

        iterator._sampler_iter = kept()
