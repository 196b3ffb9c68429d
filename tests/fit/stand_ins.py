# SPDX-License-Identifier: Apache-2.0
# Stand-ins for torch, for the checks beside this file; makes python/cufit_tracer importable.
import os
import sys
import types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))


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

    order = ()  # of batches

    def _get_iterator(self):
        assert self.num_workers == 0, "processes would be started"
        fetcher = types.SimpleNamespace(fetch=lambda indices: self.collate_fn([self.dataset[i] for i in indices]))
        return types.SimpleNamespace(_dataset_fetcher=fetcher, _index_sampler=self.order, _sampler_iter=iter(self.order))

    __iter__ = _get_iterator


class BatchSampler:
    def __init__(self, sampler, batch_size, drop_last):
        pass


class FakeTensor:
    shape, dtype = (2,), "float32"


def tracer_on(torch):
    notes = []
    file = types.SimpleNamespace(fact=lambda *args: None, note=lambda kind, detail, source: notes.append(detail))
    return types.SimpleNamespace(torch=torch, file=file, notes=notes, wanted={"BATCH": None, "BATCH_WAS": None, "STEPS": 3}, loaders=0, unreached={}, made_up=False, capturing=False, evaluates=lambda: False,
                                 trained_with=None, source=lambda: "here:1", lengths=lambda place: lambda batch: batch, FakeTensor=FakeTensor)

