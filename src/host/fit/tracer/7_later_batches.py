# ---- batches that no step is traced with --------------------------------------------------------------------------------------

# Where the batches of training are not of one size, what the allocator holds grows with every larger one, over many more steps than
# are traced. So the batches that the DataLoader would give next are fetched, and their sizes are told beside those of the traced ones
# (src/fit/later_batches.cc): to the end of the epoch, and of the one behind validation, up to a number and a time each.
class LaterBatches:
    MOST, SECONDS, SIZES = 200, 10, 32

    def __init__(self, tracer):
        self.tracer = tracer
        self.given = weakref.WeakKeyDictionary()  # by loader: the sizes of its batches so far
        self.again = weakref.WeakKeyDictionary()  # the same by iterator, of those made after the steps
        self.like = None  # the sizes of one, where they are told
        self.kept = []  # the first that were fetched: a step more is traced with them

    # None: too many tensors to tell what decides.
    def sizes(self, batch):
        out = [size for tensor in tensors_of_batch(self.tracer.torch, batch) for size in tensor.shape]
        return out if 0 < len(out) <= self.SIZES else None

    def saw(self, iterator, batch):
        loader = loader_of(iterator)
        if loader is not None and not self.tracer.after.began:
            self.given.setdefault(loader, []).append(self.sizes(batch))
        elif self.like is not None:
            self.again.setdefault(iterator, []).append(self.sizes(batch))

    # What was fetched of this iterator and not used.
    def left(self):
        return self.kept.pop(0) if self.kept else None

    # At the end of the steps. `keep`: batches of a step.
    def tell(self, iterators, keep, real_next):
        loader = loader_of(iterators[0]) if len(iterators) == 1 else None
        given = self.given.get(loader) if loader is not None else None
        if not given or any(sizes is None or len(sizes) != len(given[0]) for sizes in given) or all(sizes == given[0] for sizes in given):
            return
        self.like = given[0]
        self.write("batch_given", given)
        self.fetch(iterators[0], loader, len(given), keep, real_next)

    # At the end of a step behind validation.
    def tell_next(self, iterator, real_next):
        loader, given = loader_of(iterator), self.again.get(iterator)
        if self.like is not None and loader in self.given and given:
            self.write("batch_to_come", given)
            self.fetch(iterator, loader, len(given), 0, real_next)

    def write(self, op, batches):
        file = self.tracer.file
        site = file.site(op, "", "", self.tracer.phase)
        for sizes in batches:
            if sizes is not None and len(sizes) == len(self.like):
                file.call(site, sizes)

    # Not what would not fill a batch: more samples stand behind the program's own (5_modules.py), and the next epoch is drawn where
    # they are come to.
    def fetch(self, iterator, loader, given, keep, real_next):
        until = time.monotonic() + self.SECONDS
        if self.tracer.wanted["DEADLINE"]:
            until = min(until, float(self.tracer.wanted["DEADLINE"]) - 15)
        samples, batch = getattr(loader, "_cufit_samples", None), getattr(loader, "_cufit_batch", None)
        left = min(self.MOST, samples // batch - given % max(1, samples // batch) if samples and batch else self.MOST)
        out = []
        while len(out) < left and time.monotonic() < until:
            try:
                batch = real_next(iterator)
            except (StopIteration, Exception):
                break
            if len(self.kept) < keep:
                self.kept.append(batch)
            out.append(self.sizes(batch))
        self.write("batch_to_come", out)


def loader_of(iterator):
    return iterator._cufit_loader() if hasattr(iterator, "_cufit_loader") else None


def tensors_of_batch(torch, value):
    if isinstance(value, torch.Tensor):
        return [value]
    if hasattr(value, "keys") and hasattr(value, "values"):  # collections.UserDict, too
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_of_batch(torch, item)]
    return []
