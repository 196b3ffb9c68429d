# SPDX-License-Identifier: Apache-2.0
"""Operators whose kernels ask the allocator for workspaces of their own;
src/fit/workspaces/*_workspace.h say what the numbers are."""

from ..cuda.settings import asked_tf32
from ..tensors import first_of, runs_last
from .attention import ATTENTION, ATTENTION_BACKWARD, attention_call
from .fft import FFTS, fft
from .recurrent import recurrent
from .reductions import REDUCTIONS, rows_and_columns

MATMULS = {
    "aten::mm",
    "aten::addmm",
    "aten::bmm",
    "aten::baddbmm",
    "aten::_addmm_activation",
    "aten::addmv",
    "aten::mv",
}


def tell_call(tracer, func, args, out):
    name = func._schema.name
    if name == "aten::convolution":
        tell_forward(tracer, args, out)
    elif name == "aten::convolution_backward":
        for kind in (1, 2):
            if args[10][kind - 1]:
                tell_gradient(tracer, args, kind)
        if args[10][2]:
            tell_sum_of_bias(tracer, args)
    elif name in REDUCTIONS and len(args) > REDUCTIONS[name][0]:
        tell_reduction(tracer, name, args, out)
    elif name in FFTS:
        fft(tracer, FFTS[name], args, out)
    elif name == "aten::embedding_dense_backward":
        tell_rows(tracer, "embedding", args[1], args[2], args[0])
    elif name == "aten::_embedding_bag_backward" and not args[9] and args[8] != 2:
        tell_rows(tracer, "embedding_bag", args[1], args[6], args[0])
    elif name in ATTENTION and not tracer.attends:
        attention_call(tracer, args[0], args[1], ATTENTION[name])
    elif name in ATTENTION_BACKWARD:
        attention_call(tracer, args[1], args[2], 8 + ATTENTION_BACKWARD[name])
    elif name == "aten::_cudnn_rnn":
        drops = args[11] > 0 and args[12]
        layer = args[6], args[7], args[9], args[13], args[14], drops
        recurrent(tracer, args[0], args[1], *layer, False)
    elif name in MATMULS:
        tell_product(tracer, name, args)


# A call of no module, where it stands.
def tell(tracer, op, numbers):
    tracer.file.call(tracer.file.site(op, "", tracer.source(), tracer.phase), numbers)


def tell_reduction(tracer, name, args, out):
    at, each = REDUCTIONS[name]
    over = args[at]
    if over is None or isinstance(over, tracer.torch.Tensor):
        return
    numbers = rows_and_columns(args[0], [over] if type(over) is int else over)
    if numbers:
        least = 4 if args[0].dtype.is_floating_point else 1
        each = each or max(first_of(out).element_size(), least)
        tell(tracer, "reduce_rows", numbers + ([each] if each != 4 else []))


def tell_rows(tracer, op, indices, rows, grad):
    numbers = [indices.numel(), rows, grad.shape[-1], max(grad.element_size(), 4)]
    tell(tracer, op, numbers)


def tell_product(tracer, name, args):
    a, b = [value for value in args if isinstance(value, tracer.torch.Tensor)][-2:]
    if a.dim() < 2 or b.dim() < 2:
        return
    batch = a.shape[0] if a.dim() == 3 else 1
    tf32 = int(asked_tf32(tracer.torch.backends.cuda.matmul))
    with_bias = name == "aten::addmm" and args[0].dim() == 1
    numbers = [a.element_size() * 8, tf32, batch, a.shape[-2], b.shape[-1], a.shape[-1]]
    tell(tracer, "matmul_bias" if with_bias else "matmul", numbers)


def tell_forward(tracer, args, out):
    x, w, _, stride, padding, dilation, transposed, _, groups = args[:9]
    conv(tracer, 0, x, w, out, stride, padding, dilation, transposed, groups)


# Of the data (1), of the weights (2).
def tell_gradient(tracer, args, kind):
    grad, x, w, _, stride, padding, dilation, transposed, _, groups = args[:10]
    conv(tracer, kind, x, w, grad, stride, padding, dilation, transposed, groups)


def tell_sum_of_bias(tracer, args):
    numbers = rows_and_columns(args[0], [0, *range(2, args[0].dim())])
    if numbers:
        tell(tracer, "reduce_rows", numbers)


def conv(tracer, kind, x, w, y, stride, padding, dilation, transposed, groups):
    spatial = x.dim() - 2
    last = int(runs_last(tracer.torch, x, w))
    numbers = [x.element_size() * 8, x.shape[0], x.shape[1], y.shape[1]]
    numbers += [groups, int(transposed), last, spatial]
    numbers += [*x.shape[2:], *y.shape[2:], *w.shape[2:]]
    for value in (stride, padding, dilation):
        numbers += list(value) * spatial if len(value) == 1 else value
    numbers = [int(number) for number in numbers]
    name = ("conv", "conv_dgrad", "conv_wgrad")[kind]
    module = tracer.modules[-1] if tracer.modules else ""
    tracer.file.call(tracer.file.site(name, module, tracer.source(), tracer.phase), numbers)
    tracer.convolution(kind, x.dtype, numbers)
