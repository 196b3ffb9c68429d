# SPDX-License-Identifier: Apache-2.0
"""What is allocated: storages on the device, their sizes and categories."""

import os

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
        held = self.held[storage] = [0, 0, 0]
        self.take(storage, held, size, site)

    def take(self, storage, held, size, site):
        held[:] = self.file.alloc(size, site), size, self.file.stream
        self.storages[storage] = held[0]
        if self.kind:
            self.file.category(held[0], self.kind)
        self.allocated += size
        self.peak = max(self.peak, self.allocated)

    # The same storage with other memory behind it, or with none: as FSDP frees what it gathered.
    def resized(self, storage, size):
        held = self.held.get(storage)
        if held is None or size == held[1]:
            return
        if held[1]:
            self.released(held)
            del self.storages[storage]
        if size:
            module = self.modules[-1] if self.modules else ""
            site = self.file.site("resize_", module, self.source(), self.phase)
            self.take(storage, held, size, site)

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

    def released(self, held):
        number, size, _ = held
        held[1] = 0
        self.allocated -= size
        if size and number not in self.dropped:
            self.waits.free(number)

    # A tensor, or the part of it that this rank holds.
    def categorise(self, tensor, category):
        if type(tensor) in self.composed:
            tensor = getattr(tensor, "_local_tensor", tensor)
        if isinstance(tensor, self.FakeTensor) and tensor.layout is self.torch.sparse_coo:
            self.categorise(tensor._values(), category)
        elif isinstance(tensor, self.FakeTensor) and tensor.fake_device.type == "cuda":
            number = self.storages.get(tensor.untyped_storage())
            if number is not None:
                self.file.category(number, category)
                if category == INPUT:
                    self.inputs.add(number)
                elif category == PARAMETER:
                    # A weight that was copied to the GPU passed for a batch until a model had it.
                    self.weights.add(number)
                    self.inputs.discard(number)

    def is_input(self, tensor):
        strided = isinstance(tensor, self.FakeTensor) and tensor.layout is self.torch.strided
        return strided and self.storages.get(tensor.untyped_storage()) in self.inputs
