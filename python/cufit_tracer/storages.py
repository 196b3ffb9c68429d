# SPDX-License-Identifier: Apache-2.0
"""What is allocated: storages on the device, their sizes and categories."""

import os
import weakref

from .event_file import INPUT, PARAMETER
from .program.launchers import follows


class Storages:
    def tell(self, value, site):
        torch = self.torch
        if isinstance(value, torch.Tensor):
            if isinstance(value, self.FakeTensor) and value.fake_device.type == "cuda":
                if value.layout is torch.sparse_coo:
                    self.tell((value._indices(), value._values()), site)
                else:
                    self.tell_storage(value.untyped_storage(), site)
        elif isinstance(value, (list, tuple)):
            for item in value:
                self.tell(item, site)

    def tell_storage(self, storage, site):
        if storage in self.storages or self.sums.learning:
            return
        size = int(storage.nbytes())
        if size == 0:
            return
        if not self.file.on_disk and not self.file.closed and (follows() or not self.file.begin()):
            os._exit(
                0
            )  # another process of this program is traced; its launcher waits for that one
        number = self.file.alloc(size, site)
        self.storages[storage] = number
        self.allocated += size
        self.peak = max(self.peak, self.allocated)
        weakref.finalize(storage, self.released, number, size).atexit = False

    # Bytes of the storages that are there, by their numbers from `first` up to `end`.
    def there(self, first, end):
        return {
            number: storage.nbytes()
            for storage, number in sorted(self.storages.items(), key=lambda entry: entry[1])
            if first <= number < end and number not in self.dropped
        }

    # Freed in the trace, whatever the program holds.
    def drop(self, number):
        self.dropped.add(number)
        self.file.free(number)

    def released(self, number, size):
        self.allocated -= size
        if number not in self.dropped:
            self.file.free(number)

    def categorise(self, tensor, category):
        if isinstance(tensor, self.FakeTensor) and tensor.layout is self.torch.sparse_coo:
            self.categorise(tensor._values(), category)
        elif isinstance(tensor, self.FakeTensor) and tensor.fake_device.type == "cuda":
            number = self.storages.get(tensor.untyped_storage())
            if number is not None:
                self.file.category(number, category)
                if category in (INPUT, PARAMETER):
                    (self.inputs if category == INPUT else self.weights).add(number)

    def is_input(self, tensor):
        strided = isinstance(tensor, self.FakeTensor) and tensor.layout is self.torch.strided
        return strided and self.storages.get(tensor.untyped_storage()) in self.inputs
