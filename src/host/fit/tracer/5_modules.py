# ---- modules, optimizers, loaders -------------------------------------------------------------------------------------------

def patch_modules(tracer):
    torch = tracer.torch
    Module = torch.nn.Module
    Parameter = torch.nn.Parameter
    from torch.nn.parameter import is_lazy
    real_new = Parameter.__new__

    # Every parameter is fake from the start: optimizers keep hold of it, and it cannot become fake later.
    def new(cls, data=None, requires_grad=True):
        if isinstance(data, torch.Tensor) and not isinstance(data, tracer.FakeTensor) and data.device.type == "cpu" and type(data) is torch.Tensor:
            value = data.detach()
            with tracer.fake:
                data = tracer.fake.from_tensor(value)
            if value.numel() <= 4096:
                tracer.shadows[data] = value
        return real_new(cls, data, requires_grad)

    Parameter.__new__ = new

    # As Module._apply does where it may set `data`, but for the device, which a fake tensor keeps beside.
    def apply(self, fn, recurse=True):
        if recurse:
            for child in self.children():
                child._apply(fn)
        for key, parameter in self._parameters.items():
            if parameter is None:
                continue
            for holder in (parameter, parameter.grad):
                if holder is None:
                    continue
                if is_lazy(holder):
                    place_lazy(tracer, holder, fn)
                    continue
                with torch.no_grad():
                    value = fn(holder)
                if value is holder:
                    continue
                if isinstance(holder, tracer.FakeTensor):
                    holder.data = value
                    holder.fake_device = value.fake_device
                elif holder is parameter:
                    self._parameters[key] = Parameter(value, parameter.requires_grad)
        for key, buffer in self._buffers.items():
            if is_lazy(buffer):
                place_lazy(tracer, buffer, fn)
            elif buffer is not None:
                self._buffers[key] = fn(buffer)
        return self

    Module._apply = apply
    real_train, deep = Module.train, []

    def train(self, mode=True):
        if not deep:
            tracer.told.add(self)
        deep.append(1)
        try:
            return real_train(self, mode)
        finally:
            deep.pop()

    Module.train = train

    # cuDNN wants the weights of a layer side by side.
    def flatten(self):
        weights = [w for w in self._flat_weights if isinstance(w, tracer.FakeTensor) and w.device.type == "cuda"]
        if not weights or len(weights) != len(self._flat_weights) or len({w.untyped_storage()._cdata for w in weights}) == 1:
            return
        with torch.no_grad():
            whole = torch.empty(sum(w.numel() for w in weights), dtype=weights[0].dtype, device="cuda")
            at = 0
            for w in weights:
                w.data = whole[at:at + w.numel()].view(w.shape)
                at += w.numel()

    torch.nn.RNNBase.flatten_parameters = flatten
    for name in dir(torch.nn.init):
        function = getattr(torch.nn.init, name)
        if name.endswith("_") and not name.startswith("_") and callable(function):
            def skip(tensor, *args, _function=function, _name=name, **kwargs):
                if not isinstance(tensor, tracer.FakeTensor):
                    return _function(tensor, *args, **kwargs)
                value = tracer.shadows.get(tensor)
                if value is not None:
                    with torch.no_grad():
                        _function(value, *args, **kwargs)
                else:
                    tracer.draws.skipped(_name, tensor, *args, **kwargs)
                return tensor
            setattr(torch.nn.init, name, skip)

    def tell_parameters(module):
        if module in tracer.names:
            return
        for name, child in module.named_modules():
            tracer.names.setdefault(child, name or type(child).__name__)
        for parameter in module.parameters():
            tracer.categorise(parameter.data, PARAMETER)
        for buffer in module.buffers():
            tracer.categorise(buffer, BUFFER)

    tracer.tell_parameters = tell_parameters

    def before(module, args):
        if not tracer.modules:
            tracer.outermost.add(module)
            if module not in tracer.names:
                tell_parameters(module)
            if not module.training and tracer.steps:
                tracer.evaluated = True
            elif not module.training and not torch.is_grad_enabled():
                tracer.repeats.evaluates(module)
            elif module.training and module in tracer.repeats.watched:
                tracer.evaluated = True
            if tracer.after.began:
                tracer.after.forward(module, torch.is_grad_enabled() and module.training and any(p.requires_grad for p in module.parameters()))
        if torch.is_grad_enabled():
            if tracer.by_hand and not tracer.modules and module.training:
                tracer.by_hand = None
                tracer.step_ends()
            tracer.repeats.trains()
            tracer.step_begins()
            tracer.shows(module, args)
        tracer.modules.append(tracer.names.get(module, type(module).__name__))

    def after(module, args, out):
        if tracer.modules:
            tracer.modules.pop()
            if len(tracer.modules) < tracer.shown:
                tracer.shown = 0

    from torch.nn.modules import module as hooks
    hooks.register_module_forward_pre_hook(before)
    hooks.register_module_forward_hook(after, always_call=True)


def patch_optimizers(tracer):
    torch = tracer.torch
    import torch.optim.optimizer as optimizer

    optimizer._foreach_supported_types.append(tracer.FakeTensor)
    optimizer._get_foreach_kernels_supported_devices = lambda: ["cuda"]
    real_backward, real_grad = torch.autograd.backward, torch.autograd.grad

    def backward(*args, **kwargs):
        tracer.sums.learn()
        before, tracer.phase = tracer.phase, BACKWARD
        try:
            return real_backward(*args, **kwargs)
        finally:
            tracer.phase = before
            if tracer.by_hand is None and not tracer.made:
                tracer.by_hand = False

    def grad(*args, **kwargs):
        tracer.sums.learn()
        before, tracer.phase = tracer.phase, BACKWARD if tracer.phase == FORWARD and not tracer.compiling else tracer.phase
        try:
            return real_grad(*args, **kwargs)
        finally:
            tracer.phase = before
            # Autograd's thread lets go of the last gradient when it gets Python's lock, else at any time.
            time.sleep(0.0002)

    as_builtin(torch, grad, "aten::grad")
    torch.autograd.backward, torch.autograd.grad = backward, grad

    def step_before(self, args, kwargs):
        for group in self.param_groups:
            for parameter in group["params"]:
                tracer.categorise(parameter.data, PARAMETER)
                if parameter.grad is not None:
                    tracer.categorise(parameter.grad, GRADIENT)
        before, tracer.phase = tracer.phase, OPTIMIZER
        closure = kwargs.get("closure") or (args[1] if len(args) > 1 else None)
        if not callable(closure):
            return None

        # Lightning's forward and backward run within the optimizer's step.
        def inside():
            tracer.phase = before
            try:
                return closure()
            finally:
                tracer.phase = OPTIMIZER
                for group in self.param_groups:
                    for parameter in group["params"]:
                        if parameter.grad is not None:
                            tracer.categorise(parameter.grad, GRADIENT)

        if "closure" in kwargs:
            return args, dict(kwargs, closure=inside)
        return (args[0], inside) + tuple(args[2:]), kwargs

    def step_after(self, args, kwargs):
        for state in self.state.values():
            for value in state.values() if isinstance(state, dict) else ():
                if isinstance(value, torch.Tensor):
                    tracer.categorise(value, OPTIMIZER_STATE)
        tracer.phase = FORWARD
        tracer.optimizer_steps(id(self))

    real_init = optimizer.Optimizer.__init__

    def init(self, *args, **kwargs):
        tracer.optimizers += 1
        tracer.made.add(self)
        real_init(self, *args, **kwargs)

    optimizer.Optimizer.__init__ = init
    optimizer.register_optimizer_step_pre_hook(step_before)
    optimizer.register_optimizer_step_post_hook(step_after)
    # Whether gradients overflow is not known without values: they do not.
    torch.amp.GradScaler._maybe_opt_step = lambda self, optimizer, state, *args, **kwargs: optimizer.step(*args, **kwargs)


def patch_loaders(tracer):
    import inspect

    data = tracer.torch.utils.data
    real = data.DataLoader.__init__
    real_sampler = data.BatchSampler.__init__
    real_iterator = data.DataLoader._get_iterator
    worker = data._utils.worker
    inside, ended = [], set()

    class Repeated(data.Dataset):
        """A data set over and over: enough for the steps at a greater batch size."""

        def __init__(self, dataset, length):
            self._dataset, self._length = dataset, length

        def __len__(self):
            return self._length

        def __getitem__(self, index):
            return self._dataset[index % len(self._dataset)]

        def __getattr__(self, name):
            if name in ("_dataset", "__getitems__"):
                raise AttributeError(name)
            return getattr(self._dataset, name)

    class Cycled:
        """A sampler over and over, which goes by the length that the data set had when it was made. Passes for one of its kind."""

        def __init__(self, sampler, times, between=None):
            self._sampler, self._times, self._between = sampler, times, between

        @property
        def __class__(self):
            return type(self._sampler)

        def __len__(self):
            return self._times * len(self._sampler)

        def __iter__(self):
            for time in range(self._times):
                if time and self._between:
                    self._between()
                yield from self._sampler

        def __getattr__(self, name):
            if name in ("_sampler", "_times", "_between"):
                raise AttributeError(name)
            return getattr(self._sampler, name)

    def length(of):
        try:
            return len(of)
        except TypeError:  # some have the method and no length
            return 0

    # What is given in its place.
    def told(batch_size, what):
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

    # Some loaders keep one iterator for all epochs and ask it for each batch from a generator, which may not end by StopIteration.
    def end_generator(kind):
        real = kind.__dict__.get("__iter__")
        if not inspect.isgeneratorfunction(real) or kind in ended:
            return
        ended.add(kind)

        def iterate(self):
            try:
                yield from real(self)
            except RuntimeError as error:
                if not (tracer.after.began and isinstance(error.__cause__, StopIteration)):
                    raise

        kind.__iter__ = iterate

    def init(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, *args, **kwargs):
        for kind in type(self).__mro__:
            end_generator(kind)
        self._cufit_order = tracer.loaders
        if isinstance(batch_size, int) and batch_sampler is None:
            self._cufit_made = (batch_size, tracer.source())
            tracer.unreached[id(self._cufit_made)] = self._cufit_made
        if batch_sampler is None and batch_size is not None:
            batch_size = told(batch_size, "DataLoader")
        self._cufit_samples = samples(dataset, sampler)
        self._cufit_batch = batch_size if batch_sampler is None else getattr(batch_sampler, "batch_size", None)
        if batch_sampler is None and batch_size is not None:
            enough = batch_size * (tracer.wanted["STEPS"] + 1) * 16
            if sampler is None and not isinstance(dataset, data.IterableDataset) and 0 < length(dataset) < enough:
                whole, generator = dataset, kwargs.get("generator")
                times = enough // len(dataset) + 1
                dataset = Repeated(dataset, times * len(dataset))
                if shuffle is True:  # in the order of the program's own epochs, for each of which the loader draws a seed, too
                    draw = lambda: tracer.torch.empty((), dtype=tracer.torch.int64).random_(generator=generator)
                    sampler, shuffle = Cycled(data.RandomSampler(whole, generator=generator), times, draw), None
                    sampler.data_source = dataset  # who makes a sampler of this one (accelerate) goes by that
            elif isinstance(sampler, data.Sampler) and 0 < length(sampler) < enough:
                sampler = Cycled(sampler, enough // len(sampler) + 1)
        for key in ("pin_memory", "persistent_workers"):
            if kwargs.get(key):
                kwargs[key] = False
        for key in ("prefetch_factor", "multiprocessing_context", "timeout"):
            kwargs.pop(key, None)
        inside.append(1)
        try:
            real(self, dataset, batch_size, shuffle, sampler, batch_sampler, 0, *args, **kwargs)
        finally:
            inside.pop()
        self.num_workers = num_workers  # who makes a loader anew from this one gives it on
        if batch_size is not None or batch_sampler is not None:
            lengths = tracer.lengths(tracer.source())
            collate = self.collate_fn
            self.collate_fn = lambda samples: lengths(collate(samples))

    # As many as the program has; 0: not known.
    def samples(dataset, sampler):
        of = sampler if isinstance(sampler, data.Sampler) else dataset
        while isinstance(of, Repeated) or type(of) is Cycled:
            of = of._dataset if isinstance(of, Repeated) else of._sampler
        return length(of)

    # Where the program has workers, this process is the one worker while it loads: some data sets are only found through what
    # a worker is told (sd-scripts), or are opened where a worker begins.
    def iterator(self):
        tracer.unreached.pop(id(getattr(self, "_cufit_made", None)), None)
        workers, self.num_workers = self.num_workers, 0
        try:
            if not workers:
                return real_iterator(self)
            dataset = self.dataset
            while isinstance(dataset, Repeated):
                dataset = dataset._dataset
            info = worker.WorkerInfo(id=0, num_workers=1, seed=0, dataset=dataset)

            def as_worker(do, *args):
                before, worker._worker_info = worker._worker_info, info
                try:
                    return do(*args)
                finally:
                    worker._worker_info = before

            if self.worker_init_fn is not None:
                as_worker(self.worker_init_fn, 0)
            made = as_worker(real_iterator, self)
            fetch = made._dataset_fetcher.fetch
            made._dataset_fetcher.fetch = lambda index: as_worker(fetch, index)
            return made
        finally:
            self.num_workers = workers

    def sampler_init(self, sampler, batch_size, drop_last, *args, **kwargs):
        if not inside and isinstance(batch_size, int):
            batch_size = told(batch_size, "BatchSampler")
        real_sampler(self, sampler, batch_size, drop_last, *args, **kwargs)

    data.DataLoader.__init__ = init
    data.DataLoader._get_iterator = iterator
    data.BatchSampler.__init__ = sampler_init


# In inference mode a dispatch mode is given operators that are made of others as they are. Gradients are all it is about here.
def patch_inference_mode(tracer):
    torch = tracer.torch

    def enter(self):
        self._cufit_before = torch.is_grad_enabled()
        torch._C._set_grad_enabled(not self.mode)

    def leave(self, *error):
        torch._C._set_grad_enabled(self._cufit_before)

    torch.inference_mode.__enter__, torch.inference_mode.__exit__ = enter, leave


