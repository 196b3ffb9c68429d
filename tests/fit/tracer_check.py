# SPDX-License-Identifier: Apache-2.0
# What the tracer of `cufit fit` does with loaders and with what programs save, on stand-ins for torch, numpy and safetensors.
# Run by tests/unit/host/fit_tracer_test.cc from the top folder; says what is wrong and ends with 1.
import os
import sys
import tempfile
import types

PARTS = "src/host/fit/tracer/"


class Dataset:
    def __len__(self):
        return 3

    def __getitem__(self, index):
        return index


class WorkerInfo:
    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)


# As torch has it: a loader with workers would start processes.
class DataLoader:
    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None,
                 pin_memory=False, persistent_workers=False, worker_init_fn=None):
        assert not persistent_workers
        self.dataset, self.num_workers, self.collate_fn, self.worker_init_fn = dataset, num_workers, collate_fn, worker_init_fn

    def _get_iterator(self):
        assert self.num_workers == 0, "processes would be started"
        fetcher = types.SimpleNamespace(fetch=lambda indices: self.collate_fn([self.dataset[i] for i in indices]))
        return types.SimpleNamespace(_dataset_fetcher=fetcher)

    __iter__ = _get_iterator


class BatchSampler:
    def __init__(self, sampler, batch_size, drop_last):
        pass


class FakeTensor:
    shape, dtype = (2,), "float32"


def tracer_on(torch):
    notes = []
    file = types.SimpleNamespace(fact=lambda *args: None, note=lambda kind, detail, source: notes.append(detail))
    return types.SimpleNamespace(torch=torch, file=file, notes=notes, wanted={"BATCH": None, "STEPS": 3}, loaders=0, unreached={}, made_up=False,
                                 trained_with=None, source=lambda: "here:1", lengths=lambda place: lambda batch: batch, FakeTensor=FakeTensor)


def parts(*names):
    space = {"os": os, "sys": sys, "_cufit_on_import": lambda *args: None}
    for name in names:
        with open(PARTS + name) as text:
            exec(compile(text.read(), name, "exec"), space)
    return space


def stand_in():
    worker = types.SimpleNamespace(WorkerInfo=WorkerInfo, _worker_info=None)
    data = types.SimpleNamespace(DataLoader=DataLoader, BatchSampler=BatchSampler, Dataset=object, Sampler=Dataset, IterableDataset=type(None),
                                 _utils=types.SimpleNamespace(worker=worker))
    return types.SimpleNamespace(utils=types.SimpleNamespace(data=data), zeros=lambda shape, dtype: ("zeros", shape), save=None), worker


# sd-scripts hands its collate function no data set where it has workers: the worker's is taken.
def check_workers(space):
    torch, worker = stand_in()
    tracer = tracer_on(torch)
    space["patch_loaders"](tracer)
    dataset, seen = Dataset(), []

    def collate(samples):
        info = worker._worker_info
        seen.append(info and (info.id, info.num_workers, info.dataset is dataset))
        return samples

    begun = []
    loader = DataLoader(dataset, num_workers=8, collate_fn=collate, persistent_workers=True, worker_init_fn=begun.append)
    assert loader.num_workers == 8, "who makes a loader from it is told that it has no workers"
    loader._get_iterator()._dataset_fetcher.fetch([0, 1])
    assert seen == [(0, 1, True)], seen
    assert begun == [0], begun
    assert worker._worker_info is None and loader.num_workers == 8
    DataLoader(dataset, collate_fn=collate)._get_iterator()._dataset_fetcher.fetch([0])
    assert seen[1] is None, "without workers there is no worker"


def check_saving(space, folder):
    torch, _ = stand_in()
    tracer = tracer_on(torch)
    written = []

    def saved(file, *args, **kwargs):
        if hasattr(file, "write"):
            file.write(b"made up")
        else:
            written.append(file)

    numpy = types.SimpleNamespace(save=saved, savez=saved, savez_compressed=saved, load=lambda file, *args: file.read() if hasattr(file, "read") else "disk")
    space["keep_arrays"](tracer, numpy)
    real, made = os.path.join(folder, "real.npy"), os.path.join(folder, "made")
    numpy.save(real, 1)
    assert written == [real], "what the program reckons on the CPU is its own"
    tracer.made_up = True
    numpy.savez(made, latents=1)
    assert written == [real], "latents of zeros were written"
    assert numpy.load(made + ".npz") == b"made up" and numpy.load(real) == "disk"
    assert len(tracer.notes) == 1, tracer.notes

    files = []
    safetensors = types.SimpleNamespace(save=lambda tensors: tensors, save_file=lambda tensors, name: files.append(name))
    space["patch_safetensors"](tracer, safetensors)
    assert safetensors.save({"a": FakeTensor(), "b": 1}) == {"a": ("zeros", (2,)), "b": 1}
    safetensors.save_file({"b": 1}, "kept")
    safetensors.save_file({"a": FakeTensor(), "b": 1}, "empty")
    assert files == ["kept"], files


space = parts("5_modules.py")
check_workers(space)
with tempfile.TemporaryDirectory() as folder:
    check_saving(space, folder)
