# ---- what programs save and load ------------------------------------------------------------------------------------------------

# Tensors have no contents to save. What `torch.save` was given is kept in mind instead, and `torch.load` makes the like of it anew.
def patch_saving(tracer):
    torch = tracer.torch
    import copy
    import torch.utils._pytree as pytree

    kept, buffers = {}, weakref.WeakKeyDictionary()
    real_load = torch.load

    class Saved:
        def __init__(self, tensor):
            self.shape, self.dtype, self.device, self.grad = tuple(tensor.shape), tensor.dtype, tensor.device, tensor.requires_grad
            self.value = None if isinstance(tensor, tracer.FakeTensor) else tensor.detach().clone()

        def make(self, device):
            device = self.device if device is None else device
            out = torch.empty(self.shape, dtype=self.dtype, device=device) if self.value is None else self.value.to(device)
            return out.requires_grad_(self.grad) if self.grad else out

    def place(file):
        return os.path.abspath(os.fsdecode(file)) if isinstance(file, (str, bytes, os.PathLike)) else getattr(file, "name", None)

    def save(obj, target, *args, **kwargs):
        tracer.file.note("scratch", "torch.save(%s) was not done" % (target if isinstance(target, str) else type(target).__name__), tracer.source())
        flat, form = pytree.tree_flatten(obj)
        held = [Saved(value) if isinstance(value, torch.Tensor) else value for value in flat], form
        path = place(target)
        if isinstance(path, str):
            kept[path] = held
        else:
            buffers[target] = held

    def load(file, map_location=None, *args, **kwargs):
        path = place(file)
        held = kept.get(path) if isinstance(path, str) else buffers.get(file)
        if held is None:
            return real_load(file, map_location, *args, **kwargs)
        device = map_location if isinstance(map_location, (str, torch.device)) else None
        flat, form = held
        flat = [value.make(device) if isinstance(value, Saved) else copy.deepcopy(value) if isinstance(value, torch.nn.Module) else value for value in flat]
        return pytree.tree_unflatten(flat, form)

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


