# SPDX-License-Identifier: Apache-2.0
"""Sums whose kernels keep what they add in a workspace."""

# Over which dimensions, and bytes of what a thread keeps: of None those of its sum, of a value with
# its place 16, of a mean with its variance and count 16.
REDUCTIONS = {
    "aten::sum": (1, None),
    "aten::mean": (1, None),
    "aten::nansum": (1, None),
    "aten::prod": (1, None),
    "aten::linalg_vector_norm": (2, None),
    "aten::max": (1, 16),
    "aten::min": (1, 16),
    "aten::argmax": (1, 16),
    "aten::argmin": (1, 16),
    "aten::var": (1, 16),
    "aten::std": (1, 16),
    "aten::var_mean": (1, 16),
    "aten::std_mean": (1, 16),
    "aten::any": (1, 1),
    "aten::all": (1, 1),
}


# Of a sum over dimensions other than the innermost in memory; None for another.
def rows_and_columns(tensor, over):
    over = {int(dimension) % max(tensor.dim(), 1) for dimension in over}
    order = sorted((d for d in range(tensor.dim()) if tensor.shape[d] > 1), key=tensor.stride)
    if not order or order[0] in over or not any(dimension in over for dimension in order):
        return None
    size = columns = 1
    inner = 0  # what lies side by side
    for dimension in order:
        if tensor.stride(dimension) != size:
            return None
        size *= int(tensor.shape[dimension])
        if dimension not in over:
            columns *= int(tensor.shape[dimension])
        elif not inner:
            inner = columns
    if inner != columns and inner % 4:  # a thread takes up to four outputs that lie side by side
        return None
    return [size // columns, columns]
