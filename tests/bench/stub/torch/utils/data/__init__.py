# SPDX-License-Identifier: Apache-2.0
import time


class IterableDataset:
    pass


class DataLoader:
    batch_size, num_workers, prefetch_factor, timeout = 4, 0, None, 0
    pin_memory = persistent_workers = drop_last = False
    collate_fn = worker_init_fn = generator = batch_sampler = sampler = None
    multiprocessing_context = None

    def __init__(self, dataset, num_workers=0, **words):
        self.dataset, self.num_workers = dataset, num_workers

    def __len__(self):
        return len(self.dataset)

    def __iter__(self):
        for item in self.dataset:
            time.sleep(0.0005 if self.num_workers else 0.04)
            yield item
