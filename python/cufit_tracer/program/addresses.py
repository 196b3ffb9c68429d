# SPDX-License-Identifier: Apache-2.0
"""Addresses of tensors without contents."""


# Two tensors share memory if their addresses are equal. Those of tensors without contents are in no
# machine's memory, so that nothing can be written there, and as well aligned as those of a GPU.
def patch_addresses(tracer):
    torch = tracer.torch
    real, real_of = torch.UntypedStorage.data_ptr, torch.Tensor.data_ptr
    NOWHERE, ALIGNED = 1 << 62, 9

    def made_up(storage):
        return NOWHERE | (storage._cdata << ALIGNED) & (NOWHERE - 1)

    def of_storage(self):
        if self.device.type != "meta":
            return real(self)
        return made_up(self) if self.nbytes() else 0

    def of_tensor(self):
        if not isinstance(self, tracer.FakeTensor):
            return real_of(self)
        return (
            made_up(self.untyped_storage()) + self.storage_offset() * self.element_size()
            if self.numel()
            else 0
        )

    torch.UntypedStorage.data_ptr, torch.Tensor.data_ptr = of_storage, of_tensor
