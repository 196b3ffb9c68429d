# ---- what programs save and load ------------------------------------------------------------------------------------------------

# Tensors have no contents to save. What `torch.save` was given is pickled into memory with a place for each tensor, and `torch.load`
# makes the like of it anew.
def patch_saving(tracer):
    torch = tracer.torch
    import pickle

    kept, buffers = {}, weakref.WeakKeyDictionary()
    real_load = torch.load

    class Saved:
        def __init__(self, tensor):
            self.parameter, self.grad = isinstance(tensor, torch.nn.Parameter), tensor.requires_grad
            self.dtype, self.device = tensor.dtype, tensor.device
            self.value = self.storage = None
            if not isinstance(tensor, tracer.FakeTensor) or tensor.layout is not torch.strided:
                self.value = tensor.detach()
                return
            self.storage, self.bytes = tensor.untyped_storage()._cdata, tensor.untyped_storage().nbytes()
            self.place = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()

        # `storages`: those that are there already, since tensors that shared one do so again.
        def make(self, device, storages):
            if self.storage is None:
                out = self.value.to(device)
            else:
                key = self.storage, self.dtype
                if key not in storages:
                    storages[key] = torch.empty(self.bytes // self.dtype.itemsize, dtype=self.dtype, device=device)
                out = storages[key].as_strided(*self.place)
            return torch.nn.Parameter(out, self.grad) if self.parameter else out.requires_grad_() if self.grad else out

    class Pickler(pickle.Pickler):
        def __init__(self, out):
            super().__init__(out, 2)
            self.tensors, self.numbers = [], {}

        def persistent_id(self, value):
            if not isinstance(value, torch.Tensor):
                return None
            if id(value) not in self.numbers:
                self.numbers[id(value)] = len(self.tensors)
                self.tensors.append(Saved(value))
            return self.numbers[id(value)]

    def place(file):
        path = file if isinstance(file, (str, bytes, os.PathLike)) else getattr(file, "name", None)
        return os.path.abspath(os.fsdecode(path)) if isinstance(path, (str, bytes, os.PathLike)) else None

    def save(obj, target, *args, **kwargs):
        tracer.file.note("scratch", "torch.save(%s) was not done" % (target if isinstance(target, str) else type(target).__name__), tracer.source())
        tracer.repeats.leave()
        out = io.BytesIO()
        pickler = Pickler(out)
        path = place(target)
        try:
            with torch.no_grad():
                pickler.dump(obj)
            (buffers if path is None else kept)[path or target] = out.getvalue(), pickler.tensors
        except Exception:  # it would not come back
            kept.pop(path, None)

    def device_for(saved, wanted):
        if isinstance(wanted, dict):
            wanted = wanted.get(str(saved), wanted.get(saved.type, saved))
        elif callable(wanted):
            wanted = getattr(wanted(torch.empty(0).untyped_storage(), str(saved)), "device", saved)
        return saved if wanted is None else torch.device(wanted)

    def load(file, map_location=None, *args, **kwargs):
        path = place(file)
        held = kept.get(path) if path is not None else buffers.get(file)
        if held is None:
            return real_load(file, map_location, *args, **kwargs)
        storages, made = {}, {}

        def again(number):
            if number not in made:
                saved = held[1][number]
                made[number] = saved.make(device_for(saved.device, map_location), storages)
            return made[number]

        unpickler = pickle.Unpickler(io.BytesIO(held[0]))
        unpickler.persistent_load = again
        return unpickler.load()

    torch.save, torch.load = save, load
    if "numpy" in sys.modules:
        keep_arrays(tracer, sys.modules["numpy"])
    else:
        _cufit_on_import("numpy", lambda numpy: keep_arrays(tracer, numpy))


# `save_file` of tensors without contents is not done; what only wants the bytes, to make a hash of them, is given zeros.
def patch_safetensors(tracer, module):
    torch = tracer.torch
    real_save, real_save_file = module.save, module.save_file
    empty = lambda value: isinstance(value, tracer.FakeTensor)

    def save(tensors, *args, **kwargs):
        return real_save({name: torch.zeros(tuple(value.shape), dtype=value.dtype) if empty(value) else value
                          for name, value in tensors.items()}, *args, **kwargs)

    def save_file(tensors, filename, *args, **kwargs):
        if not any(empty(value) for value in tensors.values()):
            return real_save_file(tensors, filename, *args, **kwargs)
        tracer.file.note("scratch", "safetensors.torch.save_file(%s) was not done" % filename, tracer.source())

    module.save, module.save_file = save, save_file


# Programs keep what a frozen model makes of their data (sd-scripts: latents) in files beside it, and a later run trusts them. Once
# an array has come out of a tensor without contents, what numpy saves stays in memory, and numpy finds it there again.
def keep_arrays(tracer, numpy):
    import io

    kept = {}

    def place(file):
        return os.path.abspath(os.fspath(file)) if isinstance(file, (str, os.PathLike)) else None

    def saver(name, suffix):
        real = getattr(numpy, name)

        def save(file, *args, **kwargs):
            path = place(file)
            if path is None or not tracer.made_up:
                return real(file, *args, **kwargs)
            into = io.BytesIO()
            real(into, *args, **kwargs)
            kept[path if path.endswith(suffix) else path + suffix] = into.getvalue()
            tracer.file.note("scratch", "what numpy.%s was given, which came from tensors without values" % name, tracer.source())

        setattr(numpy, name, save)

    for name, suffix in (("save", ".npy"), ("savez", ".npz"), ("savez_compressed", ".npz")):
        saver(name, suffix)
    real_load = numpy.load

    def load(file, mmap_mode=None, *args, **kwargs):
        data = kept.get(place(file))
        return real_load(file, mmap_mode, *args, **kwargs) if data is None else real_load(io.BytesIO(data), None, *args, **kwargs)

    numpy.load = load


