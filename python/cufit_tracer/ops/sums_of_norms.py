# SPDX-License-Identifier: Apache-2.0
"""Gradients of a norm's weights over many short rows are summed in parts, 32 rows each, and then
again (aten/src/ATen/native/cuda/layer_norm_kernel.cu); to the byte on an H200."""

from ..tensors import size_of

NORMS = ("aten::native_layer_norm_backward", "aten::_fused_rms_norm_backward")
MANY_ROWS, MOST_PARTS, HALF_THE_MULTIPROCESSORS = 65536, 32768, 66  # the last of an H100


def sum_of_norm(tracer, name, args, out, site):
    if name not in NORMS:
        return
    x, shape, weights = args[1], args[2], [t for t in out[1:] if t is not None and t.numel()]
    columns = 1
    for length in shape:
        columns *= int(length)
    rows = x.numel() // max(columns, 1)
    if not weights or rows <= MANY_ROWS or columns // 32 >= HALF_THE_MULTIPROCESSORS:
        return
    file = tracer.file
    parts = min(-(-rows // 32), MOST_PARTS // -(-columns // 32))
    storages = [file.alloc(parts * size_of(t), site) for t in weights]
    for t in weights:
        file.call(file.site("reduce_rows", "", tracer.source(), tracer.phase), [parts, columns])
        file.free(file.alloc(size_of(t), site))
    for storage in storages:
        file.free(storage)
