# SPDX-License-Identifier: Apache-2.0
"""Batches as containers of tensors."""

import copy


# The containers anew, the tensors themselves: a step may take members out of its batch.
def renewed(batch):
    if isinstance(batch, dict):
        try:
            return type(batch)({key: renewed(value) for key, value in batch.items()})
        except TypeError:
            return batch
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(renewed(value) for value in batch))
    if type(batch) in (list, tuple):
        return type(batch)(renewed(value) for value in batch)
    if hasattr(batch, "to") and not hasattr(batch, "numel"):  # no tensor
        try:
            return copy.copy(batch)  # its to() may move what it holds
        except Exception:
            return batch
    return batch


def bytes_of(torch, batch, depth=0):
    if isinstance(batch, torch.Tensor):
        return batch.numel() * batch.element_size()
    if depth < 8 and hasattr(batch, "values") and callable(batch.values):
        return sum(bytes_of(torch, value, depth + 1) for value in batch.values())
    if depth < 8 and isinstance(batch, (list, tuple)):
        return sum(bytes_of(torch, value, depth + 1) for value in batch)
    return 0


# Made there by the dataset itself: memory of the device cannot be pinned, and no worker makes it.
def is_on_device(torch, batch, depth=0):
    if isinstance(batch, torch.Tensor):
        return bool(getattr(batch, "is_cuda", False))
    if depth < 8 and hasattr(batch, "values") and callable(batch.values):
        return any(is_on_device(torch, value, depth + 1) for value in batch.values())
    if depth < 8 and isinstance(batch, (list, tuple)):
        return any(is_on_device(torch, value, depth + 1) for value in batch)
    return False
