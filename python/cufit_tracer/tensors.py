# SPDX-License-Identifier: Apache-2.0
"""What a tensor is like: sizes, strides, formats."""

import collections.abc
import itertools
import types


def tensors_within(torch, value, deep=8):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, collections.abc.Mapping):  # collections.UserDict, too
        value = list(value.values())
    if isinstance(value, (list, tuple)) and deep:
        return [tensor for item in value for tensor in tensors_within(torch, item, deep - 1)]
    return []


# The same of a batch, which may be an object of the program's own: a data class, or a graph of
# torch_geometric (whose keys() name what it holds). What cannot be read holds none. An object may
# refer to all of the program: no more than some of what it leads to is looked at.
def tensors_of_batch(torch, value, deep=4, left=None):
    if isinstance(value, collections.abc.Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        items = value if deep else ()
    elif isinstance(value, torch.Tensor) or not deep:
        return tensors_within(torch, value)
    elif isinstance(value, (torch.nn.Module, type, types.ModuleType)):
        return []
    else:
        left = [MOST_PARTS] if left is None else left
        items = parts_of(value)
    out = []
    for item in items:
        if left is not None:
            left[0] -= 1
            if left[0] < 0:
                break
        out += tensors_of_batch(torch, item, deep - 1, left)
    return out


MOST_PARTS = 4096


def parts_of(value):
    try:
        if callable(getattr(value, "keys", None)) and hasattr(value, "__getitem__"):
            return [value[key] for key in itertools.islice(value.keys(), MOST_PARTS)]
        return list(itertools.islice(getattr(value, "__dict__", {}).values(), MOST_PARTS))
    except Exception:
        return []


def elements(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def size_of(tensor):
    return tensor.numel() * tensor.element_size()


def largest(tensors):
    return max(t.numel() for t in tensors)


# As Tensor.is_contiguous() says of one of this shape.
def in_one_piece(shape, strides):
    size = 1
    for length, stride in zip(reversed(shape), reversed(strides)):
        if length != 1 and stride != size:
            return False
        size *= length
    return True


# Its elements fill a piece of memory, each once.
def dense(tensor):
    size = 1
    for stride, length in sorted(
        (stride, length) for stride, length in zip(tensor.stride(), tensor.shape) if length != 1
    ):
        if stride != size:
            return False
        size *= length
    return True


# Whether PyTorch takes a picture or a volume for channels last: by its strides, whatever has a
# length of 1 (c10/core/MemoryFormat.h).
def suggests_last(tensor):
    strides, least = tensor.stride(), 0
    if strides[1] == 0:
        return False
    for at in (1, *range(tensor.dim() - 1, 1, -1), 0):
        size, stride = int(tensor.shape[at]), int(strides[at])
        if size == 0 or stride < least or (at == 0 and least == strides[1]):
            return False
        least = stride * size
    return True


def runs_last(torch, x, weights):
    return (
        x.dim() in (4, 5)
        and x.dtype != torch.float64
        and (suggests_last(x) or suggests_last(weights))
    )


# cuBLAS takes a matrix whose rows or columns are each in one piece; another one is copied
# (prepare_matrix_for_cublas).
def multiplies(tensor):
    if tensor.is_contiguous():
        return True
    rows, columns = tensor.shape[-2:]
    across, along = tensor.stride()[-2:]
    return along == 1 and across >= max(1, columns) or across == 1 and along >= max(1, rows)


def first_of(out):
    return out[0] if isinstance(out, (tuple, list)) else out
