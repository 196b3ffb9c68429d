# SPDX-License-Identifier: Apache-2.0
"""What programs save and load. Tensors have no contents to save: what `torch.save` was given is
pickled into memory with a place for each tensor, and `torch.load` makes the like of it anew."""

import io
import os
import weakref

from cufit_import_hook import when_imported

from .arrays import keep_arrays


def patch_saving(tracer):
    torch = tracer.torch
    import pickle

    Saved, Pickler = saved_class(tracer), pickler_class(tracer, pickle)
    kept, buffers = {}, weakref.WeakKeyDictionary()
    real_load = torch.load

    def save(obj, target, *args, **kwargs):
        named = isinstance(target, (str, os.PathLike))
        name = os.fspath(target) if named else type(target).__name__
        tracer.file.note("scratch", "torch.save(%s) was not done" % name, tracer.source())
        tracer.repeats.leave()
        out = io.BytesIO()
        pickler = Pickler(out, Saved)
        path = place_of(target)
        try:
            with torch.no_grad():
                pickler.dump(obj)
            (buffers if path is None else kept)[path or target] = out.getvalue(), pickler.tensors
        except Exception:  # it would not come back
            kept.pop(path, None)

    def load(file, map_location=None, *args, **kwargs):
        path = place_of(file)
        held = kept.get(path) if path is not None else buffers.get(file)
        if held is None:
            return real_load(file, map_location, *args, **kwargs)
        storages, made = {}, {}

        def again(number):
            if number not in made:
                saved = held[1][number]
                made[number] = saved.make(device_for(torch, saved.device, map_location), storages)
            return made[number]

        unpickler = pickle.Unpickler(io.BytesIO(held[0]))
        unpickler.persistent_load = again
        return unpickler.load()

    torch.save, torch.load = save, load
    when_imported("numpy", lambda numpy: keep_arrays(tracer, numpy))


def saved_class(tracer):
    torch = tracer.torch

    class Saved:
        def __init__(self, tensor):
            self.parameter = isinstance(tensor, torch.nn.Parameter)
            self.grad = tensor.requires_grad
            self.dtype, self.device = tensor.dtype, tensor.device
            self.value = self.storage = None
            if not isinstance(tensor, tracer.FakeTensor) or tensor.layout is not torch.strided:
                self.value = tensor.detach()
                return
            storage = tensor.untyped_storage()
            self.storage, self.bytes = storage._cdata, storage.nbytes()
            self.place = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()

        # `storages`: those that are there already, since tensors that shared one do so again.
        def make(self, device, storages):
            if self.storage is None:
                out = self.value.to(device)
            else:
                key = self.storage, self.dtype
                if key not in storages:
                    count = self.bytes // self.dtype.itemsize
                    storages[key] = torch.empty(count, dtype=self.dtype, device=device)
                out = storages[key].as_strided(*self.place)
            if self.parameter:
                return torch.nn.Parameter(out, self.grad)
            return out.requires_grad_() if self.grad else out

    return Saved


def pickler_class(tracer, pickle):
    torch = tracer.torch

    class Pickler(pickle.Pickler):
        def __init__(self, out, Saved):
            super().__init__(out, 2)
            self.Saved, self.tensors, self.numbers = Saved, [], {}

        def persistent_id(self, value):
            if not isinstance(value, torch.Tensor):
                return None
            if id(value) not in self.numbers:
                self.numbers[id(value)] = len(self.tensors)
                self.tensors.append(self.Saved(value))
            return self.numbers[id(value)]

    return Pickler


def place_of(file):
    is_path = isinstance(file, (str, bytes, os.PathLike))
    path = file if is_path else getattr(file, "name", None)
    if isinstance(path, (str, bytes, os.PathLike)):
        return os.path.abspath(os.fsdecode(path))
    return None


def device_for(torch, saved, wanted):
    if isinstance(wanted, dict):
        wanted = wanted.get(str(saved), wanted.get(saved.type, saved))
    elif callable(wanted):
        storage = torch.empty(0).untyped_storage()
        wanted = getattr(wanted(storage, str(saved)), "device", saved)
    return saved if wanted is None else torch.device(wanted)


# `save_file` of tensors without contents is not done; what only wants the bytes, to make a hash of
# them, is given zeros.
def patch_safetensors(tracer, module):
    torch = tracer.torch
    real_save, real_save_file = module.save, module.save_file

    def empty(value):
        return isinstance(value, tracer.FakeTensor)

    def zeros(value):
        return torch.zeros(tuple(value.shape), dtype=value.dtype)

    def save(tensors, *args, **kwargs):
        given = {name: zeros(t) if empty(t) else t for name, t in tensors.items()}
        return real_save(given, *args, **kwargs)

    def save_file(tensors, filename, *args, **kwargs):
        if not any(empty(value) for value in tensors.values()):
            return real_save_file(tensors, filename, *args, **kwargs)
        said = "safetensors.torch.save_file(%s) was not done" % filename
        tracer.file.note("scratch", said, tracer.source())

    module.save, module.save_file = save, save_file
