# SPDX-License-Identifier: Apache-2.0
"""DataLoaders: the batch size that is asked for, enough data for the steps, no processes."""

from .samplers import Cycled, length, repeated_class


def patch_loaders(tracer):
    data = tracer.torch.utils.data
    loaders = Loaders(tracer)
    real, real_iterator = data.DataLoader.__init__, data.DataLoader._get_iterator
    real_sampler = data.BatchSampler.__init__

    def init(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        *args,
        **kwargs,
    ):
        for kind in type(self).__mro__:
            loaders.end_generator(kind)
            loaders.take_iterator(kind)
        batch_size = loaders.keep_made(self, dataset, batch_size, sampler, batch_sampler)
        self._cufit_began = False
        self._cufit_persists = bool(kwargs.get("persistent_workers"))
        if batch_sampler is None and batch_size is not None:
            dataset, shuffle, sampler = loaders.enough(
                dataset, batch_size, shuffle, sampler, kwargs.get("generator")
            )
        ahead = kwargs.get("prefetch_factor")
        without_processes(kwargs)
        with loaders.within():
            real(self, dataset, batch_size, shuffle, sampler, batch_sampler, 0, *args, **kwargs)
        # Who makes a loader anew from this one gives these on.
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and ahead is None else ahead
        if batch_size is not None or batch_sampler is not None:
            lengths = tracer.lengths(tracer.source())
            collate = self.collate_fn
            self.collate_fn = lambda samples: lengths(collate(samples))

    def sampler_init(self, sampler, batch_size, drop_last, *args, **kwargs):
        if not loaders.inside and isinstance(batch_size, int):
            batch_size = loaders.told(batch_size, "BatchSampler")
        real_sampler(self, sampler, batch_size, drop_last, *args, **kwargs)

    data.DataLoader.__init__ = init
    data.DataLoader._get_iterator = lambda self: loaders.iterator(self, real_iterator)
    loaders.taken.add(data.DataLoader)
    data.BatchSampler.__init__ = sampler_init


def without_processes(kwargs):
    for key in ("pin_memory", "persistent_workers"):
        if kwargs.get(key):
            kwargs[key] = False
    for key in ("prefetch_factor", "multiprocessing_context", "timeout"):
        kwargs.pop(key, None)


class Within:
    def __init__(self, deep):
        self.deep = deep

    def __enter__(self):
        self.deep.append(1)

    def __exit__(self, *error):
        self.deep.pop()


class Loaders:
    def __init__(self, tracer):
        import inspect

        self.is_generator = inspect.isgeneratorfunction
        self.tracer, self.data = tracer, tracer.torch.utils.data
        self.Repeated = repeated_class(self.data)
        self.inside, self.ended, self.taken = [], set(), set()

    def within(self):
        return Within(self.inside)

    # What is given in its place.
    def told(self, batch_size, what):
        tracer = self.tracer
        if tracer.loaders == 0:
            tracer.batch_found = batch_size
            tracer.file.fact("batch_found", batch_size)
            tracer.file.fact("batch_from", "%s %s" % (what, tracer.source()))
            if not tracer.wanted["BATCH"]:
                tracer.file.fact("batch", batch_size)
        tracer.loaders += 1
        # Other loaders have batch sizes of their own, as those of validation often do.
        if tracer.wanted["BATCH_WAS"] not in (None, batch_size):
            return batch_size
        return tracer.wanted["BATCH"] or batch_size

    # Some loaders keep one iterator for all epochs and ask it for each batch from a generator,
    # which may not end by StopIteration.
    def end_generator(self, kind):
        tracer, real = self.tracer, kind.__dict__.get("__iter__")
        if not self.is_generator(real) or kind in self.ended:
            return
        self.ended.add(kind)

        def iterate(self):
            try:
                yield from real(self)
            except RuntimeError as error:
                if not (tracer.after.began and isinstance(error.__cause__, StopIteration)):
                    raise

        kind.__iter__ = iterate

    # Some make iterators of their own (litdata), of processes where there are workers.
    def take_iterator(self, kind):
        real = kind.__dict__.get("_get_iterator")
        if real is None or kind in self.taken:
            return
        self.taken.add(kind)
        kind._get_iterator = lambda loader: self.iterator(loader, real)

    # What the program made, as attributes of the loader; the batch size that it is given.
    def keep_made(self, loader, dataset, batch_size, sampler, batch_sampler):
        tracer = self.tracer
        loader._cufit_order = tracer.loaders
        if isinstance(batch_size, int) and batch_sampler is None:
            loader._cufit_made = (batch_size, tracer.source())
            tracer.unreached[id(loader._cufit_made)] = loader._cufit_made
        if batch_sampler is None and batch_size is not None:
            batch_size = self.told(batch_size, "DataLoader")
        loader._cufit_samples = self.samples(dataset, sampler)
        loader._cufit_epoch = self.samples_of_epoch(dataset, sampler, batch_sampler)
        own = batch_sampler is None
        loader._cufit_batch = batch_size if own else getattr(batch_sampler, "batch_size", None)
        return batch_size

    # As many as the program has; 0: not known.
    def samples(self, dataset, sampler):
        of = sampler if isinstance(sampler, self.data.Sampler) else dataset
        while isinstance(of, self.Repeated) or type(of) is Cycled:
            of = of._dataset if isinstance(of, self.Repeated) else of._sampler
        return length(of)

    # No batch is larger than that. One of a batch sampler of the program's own may be: 0.
    # accelerate puts its own around PyTorch's, of a sampler that it makes anew.
    def samples_of_epoch(self, dataset, sampler, batch_sampler):
        if batch_sampler is None:
            return self.samples(dataset, sampler)
        for _ in range(4):
            if type(batch_sampler) is not self.data.BatchSampler:
                batch_sampler = getattr(batch_sampler, "batch_sampler", None)
        if type(batch_sampler) is not self.data.BatchSampler:
            return 0
        made_of = getattr(batch_sampler.sampler, "data_source", None)
        repeated = isinstance(made_of, self.Repeated)
        return self.samples(made_of if repeated else batch_sampler.sampler, None)

    # Data set, shuffle and sampler for all steps.
    def enough(self, dataset, batch_size, shuffle, sampler, generator):
        tracer, data = self.tracer, self.data
        enough = batch_size * (tracer.wanted["STEPS"] + 1) * 16
        iterable = isinstance(dataset, data.IterableDataset)
        if sampler is None and not iterable and 0 < length(dataset) < enough:
            whole, torch = dataset, tracer.torch
            times = enough // len(dataset) + 1
            dataset = self.Repeated(dataset, times * len(dataset))
            if shuffle is True:
                # In the order of the program's own epochs, for each of which the loader draws a
                # seed, too.
                def draw():
                    torch.empty((), dtype=torch.int64).random_(generator=generator)

                sampler = Cycled(data.RandomSampler(whole, generator=generator), times, draw)
                # Who makes a sampler of this one (accelerate) goes by that.
                sampler.data_source = dataset
                shuffle = None
        elif isinstance(sampler, data.Sampler) and 0 < length(sampler) < enough:
            sampler = Cycled(sampler, enough // len(sampler) + 1)
        return dataset, shuffle, sampler

    # Where the program has workers, this process is the one worker while it loads: some data sets
    # are only found through what a worker is told (sd-scripts), or are opened where a worker
    # begins.
    def iterator(self, loader, real_iterator):
        self.tracer.unreached.pop(id(getattr(loader, "_cufit_made", None)), None)
        workers, loader.num_workers = loader.num_workers, 0
        try:
            return self.by_worker(loader, real_iterator) if workers else real_iterator(loader)
        finally:
            loader.num_workers = workers

    def by_worker(self, loader, real_iterator):
        worker = self.data._utils.worker
        dataset = loader.dataset
        while isinstance(dataset, self.Repeated):
            dataset = dataset._dataset
        info = worker.WorkerInfo(id=0, num_workers=1, seed=0, dataset=dataset)

        def as_worker(do, *args):
            before, worker._worker_info = worker._worker_info, info
            try:
                return do(*args)
            finally:
                worker._worker_info = before

        if loader.worker_init_fn is not None:
            as_worker(loader.worker_init_fn, 0)
        made = as_worker(real_iterator, loader)
        if not hasattr(made, "_dataset_fetcher"):
            return made  # one that has processes of its own
        # With workers torch asks for the order twice, and once an epoch where they persist.
        if not (loader._cufit_persists and loader._cufit_began):
            made._sampler_iter = iter(made._index_sampler)
        loader._cufit_began = True
        fetch = made._dataset_fetcher.fetch
        made._dataset_fetcher.fetch = lambda index: as_worker(fetch, index)
        return made
