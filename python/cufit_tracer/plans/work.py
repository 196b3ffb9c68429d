# SPDX-License-Identifier: Apache-2.0
"""What the operators of a step read and write, for estimates of time."""

from ..ops.attention import ATTENTION_BACKWARD


# Of one step, for plans: bytes that each operator reads and writes, and how many kernels it starts.
# Those that multiply tell their shapes already (tell_call, attention_call); what they move follows
# from these. src/fit/step_time.h makes seconds of it.
MULTIPLY = {
    "aten::convolution",
    "aten::convolution_backward",
    "aten::_cudnn_rnn",
    "aten::_cudnn_rnn_backward",
    "aten::mm",
    "aten::addmm",
    "aten::bmm",
    "aten::baddbmm",
    "aten::_addmm_activation",
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_cudnn_attention",
}


NO_KERNEL = {
    "aten::empty",
    "aten::empty_strided",
    "aten::empty_like",
    "aten::new_empty",
    "aten::new_empty_strided",
    "aten::_unsafe_view",
    "aten::detach",
    "aten::lift_fresh",
    "aten::_reshape_alias",
}


ROWS_ONLY = {
    "aten::embedding",
    "aten::index_select",
    "aten::gather",
    "aten::index",
}  # read as much as they write


TENSORS_OF_A_KERNEL = 48  # of an operator over lists


def tell_work(tracer, func, args, kwargs, tensors, out):
    name = func._schema.name
    if (
        name in MULTIPLY
        or name in NO_KERNEL
        or name in ATTENTION_BACKWARD
        or name.startswith("prim::")
    ):
        return
    if any(
        value.alias_info is not None and not value.alias_info.is_write
        for value in func._schema.returns
    ):
        return  # a view
    import torch.utils._pytree as pytree

    def size(values):
        total = 0
        for value in pytree.tree_leaves(values):
            if isinstance(value, tracer.FakeTensor) and value.fake_device.type == "cuda":
                total += min(value.numel() * value.element_size(), value.untyped_storage().nbytes())
        return total

    moved = size(out) * (2 if name in ROWS_ONLY else 1)
    if name not in ROWS_ONLY:
        moved += size(tensors)
    if func._schema.is_mutable:
        given = list(zip(func._schema.arguments, args)) + [
            (a, kwargs[a.name]) for a in func._schema.arguments if a.name in kwargs
        ]
        written = size(
            [
                value
                for argument, value in given
                if argument.alias_info is not None and argument.alias_info.is_write
            ]
        )
        moved += written if func._schema.returns == [] else 0
    kernels = 1
    if name.startswith(("aten::_foreach", "aten::_fused")):
        kernels = max(1, len(tensors) // TENSORS_OF_A_KERNEL)
    tell_moved(tracer, name[6:], moved, kernels)


def tell_moved(tracer, name, moved, kernels):
    site = tracer.file.site("moved", "", "", tracer.phase)
    tracer.file.call(site, [int(moved), kernels])
