# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors."""


# As the kernels of a GPU take memory (aten/src/ATen/native/sparse/cuda/SparseCUDATensor.cu,
# SparseCUDABlas.cpp).
def sparse_kernels(tracer):
    torch = tracer.torch

    def temporary(size):
        tracer.file.call(tracer.file.site("temporary", "", tracer.source(), tracer.phase), [size])

    # How many places two numbers fall on is not known: each on one of its own.
    def coalesce(x):
        if x.is_coalesced():
            return x
        tracer.file.note(
            "assumed",
            "how many elements _coalesce keeps depends on values: all were kept",
            tracer.source(),
        )
        # A number for each place, the order and where each place begins, and as much as two of
        # these to sort.
        temporary(5 * 8 * x._nnz())
        return torch.sparse_coo_tensor(
            torch.empty_like(x._indices()),
            torch.empty_like(x._values()),
            x.shape,
            is_coalesced=True,
            check_invariants=False,
        )

    # Rows and columns as 32-bit numbers, and the product column by column.
    def product(sparse, dense):
        sparse = coalesce(sparse)
        temporary(
            4 * (sparse.shape[0] + 1 + sparse._nnz())
            + sparse.shape[0] * dense.shape[1] * dense.element_size()
        )
        return dense.new_empty(sparse.shape[0], dense.shape[1])

    def multiplied(into, sparse, dense, beta=1, alpha=1):
        return product(sparse, dense)

    # Gradients of a table that is looked up twice: all places and values, one behind the other.
    def total(a, b, alpha=1):
        values = b._values() if alpha == 1 else b._values() * alpha
        return torch.sparse_coo_tensor(
            torch.cat([a._indices(), b._indices()], 1),
            torch.cat([a._values(), values]),
            a.shape,
            is_coalesced=False,
            check_invariants=False,
        )

    return {
        "add.Tensor": total,
        "_coalesce": coalesce,
        "_sparse_addmm": multiplied,
        "mm": product,
        "addmm": multiplied,
    }


# A sparse tensor of the CPU, on the GPU.
def sparse_on_gpu(torch, x, dtype):
    def place(part, dtype=None):
        return torch.ops.aten._to_copy.default(part, device=torch.device("cuda"), dtype=dtype)

    return torch.sparse_coo_tensor(
        place(x._indices()),
        place(x._values(), dtype),
        x.shape,
        is_coalesced=x.is_coalesced(),
        check_invariants=False,
    )
