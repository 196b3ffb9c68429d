# SPDX-License-Identifier: Apache-2.0
"""Sizes of the batches that no step is traced with."""

import weakref

from ..tensors import elements, tensors_of_batch


# Where the batches of training are not of one size, what the allocator holds grows with every
# larger one, over many more steps than are traced. So the batches that the DataLoader would give
# next are fetched, and their sizes are told beside those of the traced ones
# (src/fit/later_batches.cc): to the end of the epoch, and of the one behind validation, up to a
# number of batches and of elements each: pictures take longer to read than words. Not of data
# without a length, which may wait for the program, nor where batches are made on the GPU, which
# fetching them would fill.
class LaterBatches:
    MOST, ELEMENTS, SIZES = 200, 1 << 29, 32

    def __init__(self, tracer):
        self.tracer = tracer
        self.given = weakref.WeakKeyDictionary()  # by iterator: the sizes of its batches so far
        self.like = self.of = None  # the sizes of a batch, where they are told; which loader's
        self.kept, self.from_iterator = (
            [],
            None,
        )  # the first that were fetched: a step more is traced with them
        self.on = True

    # None: too many tensors to tell what decides, or one on the GPU.
    def sizes(self, batch):
        tensors = tensors_of_batch(self.tracer.torch, batch)
        if any(isinstance(tensor, self.tracer.FakeTensor) for tensor in tensors):
            return None
        out = [int(size) for tensor in tensors for size in tensor.shape]
        return out if 0 < len(out) <= self.SIZES else None

    # Whether the steps' batches so far differ, and all can be told.
    def can_tell(self):
        return any(
            None not in given and any(sizes != given[0] for sizes in given)
            for given in self.given.values()
        )

    # A batch may be anything: what cannot be read ends this, not the program.
    def safely(self, do, *args):
        try:
            if self.on:
                do(*args)
        except Exception:
            self.on = False

    def saw(self, iterator, batch):
        if self.tracer.after.began and self.like is None:
            return
        given = self.given.setdefault(iterator, [])
        if len(given) <= self.MOST:
            given.append(self.sizes(batch))

    # What was fetched of this iterator and not used.
    def left(self, iterator):
        return self.kept.pop(0) if self.kept and self.from_iterator is iterator else None

    # At the end of the steps. `keep`: batches of a step.
    def tell(self, iterators, keep, real_next):
        given = self.given.get(iterators[0]) if len(iterators) == 1 else None
        if (
            not given
            or any(sizes is None or len(sizes) != len(given[0]) for sizes in given)
            or all(sizes == given[0] for sizes in given)
        ):
            return
        self.like, self.of = given[0], loader_of(iterators[0])
        self.write("batch_given", given)
        self.from_iterator = iterators[0]
        self.fetch(iterators[0], len(given), keep, real_next)

    # At the end of a step behind validation.
    def tell_next(self, iterator, real_next):
        given = self.given.get(iterator) if iterator is not None and self.like is not None else None
        if given and loader_of(iterator) == self.of:
            self.write("batch_to_come", given)
            self.fetch(iterator, len(given), 0, real_next)

    def write(self, op, batches):
        file = self.tracer.file
        site = file.site(op, "", "", self.tracer.phase)
        for sizes in batches:
            if sizes is not None and len(sizes) == len(self.like):
                file.call(site, sizes)

    # Not what would not fill a batch: more samples stand behind the program's own (loaders.py),
    # and the next epoch is drawn where they are come to. Batches of a sampler of its own come to
    # their end by themselves.
    def fetch(self, iterator, given, keep, real_next):
        _, samples, batch = loader_of(iterator)
        left = self.MOST
        if not samples:
            return
        if isinstance(batch, int):
            if samples < batch:
                return
            left = min(left, samples // batch - given % (samples // batch))
        out, read = [], 0
        while len(out) < left and read < self.ELEMENTS:
            try:
                batch = real_next(iterator)
            except Exception:
                break
            if len(self.kept) < keep:
                self.kept.append(batch)
            read += sum(
                elements(tensor.shape) for tensor in tensors_of_batch(self.tracer.torch, batch)
            )
            out.append(self.sizes(batch))
        self.write("batch_to_come", out)


# Its number, its samples, its batch size.
def loader_of(iterator):
    return getattr(iterator, "_cufit_from", (None, None, None))
