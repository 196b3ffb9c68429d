# SPDX-License-Identifier: Apache-2.0
# What the tracer of `cufit fit` says that kernels take beside their results, on stand-ins for tensors and cuDNN; the bytes are those that an
# NVIDIA H200 with torch 2.11 allocated. Run by tests/unit/host/python/fit_tracer_test.cc from the top folder; says what is wrong and ends
# with 1.
import types

import stand_ins  # noqa: F401  makes python/cufit_tracer importable

from cufit_tracer.cuda.cudnn_answers import CudnnAnswers
from cufit_tracer.ops import convolution_copies
from cufit_tracer.ops.convolution_copies import format_of, own_kernel
from cufit_tracer.ops.layouts import Layouts
from cufit_tracer.ops.temporaries import Temporaries
from cufit_tracer.tensors import multiplies, suggests_last

BYTES = {"bool": 1, "int64": 8, "float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "complex64": 8, "uint8": 1}


class Size(tuple):
    def numel(self):
        count = 1
        for length in self:
            count *= length
        return count


class Tensor:
    def __init__(self, shape, dtype="float32", strides=None):
        self.shape, self.dtype = Size(shape), dtype
        plain, step = [], 1
        for length in reversed(shape):
            plain.insert(0, step)
            step *= length
        self.strides, self.plain = tuple(strides or plain), tuple(plain)
        self.last = len(shape) == 4 and self.strides == (shape[1] * shape[2] * shape[3], 1, shape[3] * shape[1], shape[1])

    numel = lambda self: self.shape.numel()
    __len__ = lambda self: self.shape[0]
    dim = lambda self: len(self.shape)
    stride = lambda self: self.strides
    element_size = lambda self: BYTES[self.dtype]
    is_complex = lambda self: self.dtype == "complex64"

    def is_contiguous(self, memory_format=None):
        return self.last if memory_format == "channels_last" else self.strides == self.plain

    def as_strided(self, shape, strides):
        self.shape = Size(shape)
        return self


def last_first(*shape, dtype="float32"):
    n, c, h, w = shape
    return Tensor(shape, dtype, (c * h * w, 1, w * c, c))


def temporaries():
    aten = types.SimpleNamespace(**{name: types.SimpleNamespace(default=object()) for name in (
        "convolution", "convolution_backward", "_cudnn_rnn", "native_layer_norm", "embedding_dense_backward", "native_layer_norm_backward", "roll")})
    for name in ("roll", "convolution", "convolution_backward"):
        getattr(aten, name).default = of("aten::" + name)
    torch = types.SimpleNamespace(
        Tensor=Tensor, bool="bool", uint8="uint8", float16="float16", bfloat16="bfloat16", float32="float32", float64="float64", channels_last="channels_last",
        channels_last_3d="channels_last_3d", contiguous_format="contiguous", ops=types.SimpleNamespace(aten=aten),
        empty=lambda size, dtype, device: Tensor((size,), dtype), broadcast_shapes=lambda *shapes: max(shapes, key=lambda shape: shape.numel()))

    class Fake:
        __enter__ = lambda self: None
        __exit__ = lambda self, *args: None

    return Temporaries(types.SimpleNamespace(torch=torch, fake=Fake()))


class Operator:
    def __init__(self, name):
        self._schema = types.SimpleNamespace(name=name)


operators = {}


def of(name):
    return operators.setdefault(name, Operator(name))


made = temporaries()


def after(name, args, out=None, **kwargs):
    return sum(made.after(of(name), args, kwargs, out if out is not None else args[0]))


def before(name, args, out=None):
    return sum(made.before(of(name), args, out if out is not None else args[0]))


def near(bytes, measured, less=32768):
    assert measured - less <= bytes <= measured, (bytes, measured)


def check_sums():
    mask, count = Tensor((3, 1000000), "bool"), Tensor((), "int64")
    assert after("aten::sum", (mask,), count) == 24000000
    assert after("aten::sum", (Tensor((9,)),), Tensor(())) == 0
    assert after("aten::sum", (Tensor((9,), "bfloat16"),), Tensor(())) == 0  # summed as it is read
    assert before("aten::count_nonzero", (Tensor((3, 1000000)),), count) == 3000000 and after("aten::count_nonzero", (Tensor((3, 1000000)),), count) == 24000000
    assert after("aten::cumsum", (Tensor((4, 70), "bool"), -1), Tensor((4, 70), "int64")) == 4 * 70 * 8


def check_losses():
    x, loss = Tensor((8, 64, 56, 56)), Tensor(())
    assert after("aten::mse_loss", (x, x), loss) == 6422528
    assert made.as_made(of("aten::mse_loss"), (x, x), {}, Tensor(())).strides == (1,)  # a storage of its own
    assert after("aten::mse_loss", (x, x, 0), x) == 0 and made.as_made(of("aten::mse_loss"), (x, x, 0), {}, x) is x
    assert before("aten::huber_loss", (x, x), loss) == 6422528
    assert made.as_made(of("aten::binary_cross_entropy"), (x, x, None, 0), {}, x) is x
    seen = []
    real, made.torch.empty = made.torch.empty, lambda size, **kwargs: seen.append(size) or Tensor((size,))
    made.as_made(of("aten::binary_cross_entropy"), (x, x), {}, Tensor(()))
    made.as_made(of("aten::col2im"), (Tensor((8, 576, 3136)),), {}, x)
    made.torch.empty = real
    assert seen == [x.numel(), 8 * 576 * 3136], seen
    assert before("aten::im2col", (x,), Tensor((8, 576, 3136))) == 6422528


def check_orders():
    near(after("aten::sort", (Tensor((300, 4097)),)), 9832800 + 14749695)
    near(after("aten::sort", (Tensor((5000,)),)), 40000 + 70143)
    near(after("aten::sort", (Tensor((4, 70000)), -1)), 2240000 * 2 + 1120000 + 3422975, 80000)
    near(after("aten::sort", (Tensor((6, 100000), "float16"), -1)), 4800000 * 2 + 1200000 + 6114303, 120000)
    assert after("aten::sort", (Tensor((4000, 1000)), -1)) == 0
    assert after("aten::sort", (Tensor((5000, 64)),), stable=True, dim=1) == 0 < after("aten::sort", (Tensor((5000, 64)),), stable=True, dim=0)
    places = Tensor((8, 512, 16), "int64")
    near(after("aten::index_put", (Tensor((8, 2048, 64)), [Tensor((8, 1, 1), "int64"), places], None, True)), 3165696)
    assert after("aten::index_put", (Tensor((8, 2048, 64)), [places], None)) == 0
    assert after("aten::multinomial", (Tensor((64, 5000)), 10)) == 1280000 and after("aten::multinomial", (Tensor((64, 5000)), 10, True)) == 3 * 1280000


def check_copies():
    x = last_first(8, 64, 56, 56)
    assert after("aten::_log_softmax", (x, 1, False)) == 6422528 and after("aten::_log_softmax", (Tensor((8, 64, 56, 56)), 1, False)) == 0
    small = last_first(8, 64, 3, 3)
    assert after("aten::adaptive_max_pool2d", (x, [3, 3]), (small, Tensor((8, 64, 3, 3), "int64"))) == 18432 + 36864 + 6422528
    assert before("aten::roll", (Tensor((64, 50, 50)), (3, 3), (1, 2))) == 640000 and before("aten::roll", (Tensor((64, 50, 50)), (3,), (1,))) == 0
    assert after("aten::abs", (Tensor((64, 500), "complex64"),), Tensor((64, 500))) == 256000 and after("aten::abs", (Tensor((64, 500)),)) == 0
    near(after("aten::_cdist_backward", (Tensor((500, 700)), Tensor((500, 64)), Tensor((700, 64)), 1.0)), 89600000, 0)
    near(after("aten::_pdist_backward", (Tensor((124750,)), Tensor((500, 64)), 2.0)), 63872000, 0)
    mask = Tensor((1048576,), "bool")
    assert after("aten::masked_scatter", (Tensor((1048576,)), mask, Tensor((1048576,)))) == 8388608
    assert before("aten::masked_scatter_backward", (Tensor((16, 256, 256)), mask, [1048576]), Tensor((1048576,))) == 25165824
    table = Tensor((200000, 64))
    assert after("aten::scatter_reduce", (table, 0, None, None, "mean"), table) == 51200000 * 2 + 12800000 and after("aten::scatter_reduce", (table, 0, None, None, "sum"), table) == 0
    columns = after("torchvision::deform_conv2d", (Tensor((2, 64, 50, 50)), Tensor((32, 64, 3, 3)), Tensor((2, 18, 50, 50))), Tensor((2, 32, 50, 50)))
    near(columns, 11520000 + 2 * 640000, 0)


def check_softmax():
    x = Tensor((16384, 1024))
    assert after("aten::_softmax_backward_data", (x, x, -1), x) == 67108864
    assert after("aten::logsumexp", (Tensor((3, 1000000)), [0, 1]), Tensor((1,))) == 12000004
    assert after("aten::_safe_softmax", (Tensor((64, 500)), -1)) == 32000
    assert after("torchvision::nms", (Tensor((2000, 4)), Tensor((2000,)), 0.5), Tensor((2000,), "int64")) == 512000


def check_factors():
    fits = multiplies
    assert fits(Tensor((4, 20, 30))) and fits(Tensor((4, 30, 20), strides=(600, 1, 30)))  # rows in one piece, columns
    assert fits(Tensor((4, 20, 30), strides=(1000, 50, 1)))
    assert not fits(Tensor((20, 30), strides=(0, 0))) and not fits(Tensor((400, 4, 16), strides=(1, 6400, 400)))
    picture = Tensor((400, 16, 24), "complex64", (1, 9600, 400))
    assert before("aten::bmm", (Tensor((400, 4, 16), "complex64", (1, 6400, 400)), picture)) == 204800 + 1228800
    assert before("aten::addmm", (Tensor((5,)), Tensor((3, 4)), Tensor((4, 5)))) == 0

# What is told in which order: numbers are bytes that are taken, negative ones given back, words are calls and results.
def in_order(function):
    told = []
    file = types.SimpleNamespace(alloc=lambda size, site: told.append(size) or size, free=lambda storage: told.append(-storage),
                                 call=lambda place, numbers: told.append((place, *numbers)), site=lambda op, *rest: op)
    made.tracer.file, made.tracer.source, made.tracer.phase = file, lambda: "", 1
    made.tracer.tell = lambda value, site: told.append("result")
    convolution_copies.tell_forward = lambda *args: told.append("conv")
    convolution_copies.tell_gradient = lambda tracer, args, kind: told.append(("", "conv_dgrad", "conv_wgrad")[kind])
    convolution_copies.tell_sum_of_bias = lambda *args: told.append("sum of bias")
    function()
    return told


def check_convolutions():
    func, back = made.torch.ops.aten.convolution.default, made.torch.ops.aten.convolution_backward.default
    x, w, y = last_first(2, 8, 4, 4), Tensor((16, 8, 2, 2)), last_first(2, 16, 2, 2)
    copy = 16 * 8 * 4 * 4
    forward = lambda x, w: in_order(lambda: made.convolve(func, (x, w, None, [2, 2], [0, 0], [1, 1], False, [0, 0], 1), y, ""))
    # The weights are copied when the result is there.
    assert forward(x, w) == ["result", copy, "conv", -copy]
    assert forward(x, last_first(16, 8, 2, 2)) == []  # left to others
    assert forward(Tensor((2, 8, 4, 4)), Tensor((16, 8, 2, 2))) == []
    assert forward(Tensor((2, 8, 4, 4)), last_first(16, 8, 2, 2)) == [2 * 8 * 16 * 4, "conv", "result", -2 * 8 * 16 * 4]
    backward = lambda grad, x, w, mask: in_order(lambda: made.convolve(
        back, (grad, x, w, None, [2, 2], [0, 0], [1, 1], False, [0, 0], 1, mask), (x, w, Tensor((16,))), ""))
    # For the gradient of the data alone; the gradient of the results for as long as cuDNN runs.
    assert backward(y, x, w, [True, True, True]) == ["result", copy, "conv_dgrad", -copy, "conv_wgrad", "result", "sum of bias"]
    assert backward(y, x, w, [False, True, False]) == []
    grad = Tensor((2, 16, 2, 2))
    size = 2 * 16 * 4 * 4
    assert backward(grad, x, w, [False, True, True]) == [size, "conv_wgrad", "result", -size, "sum of bias"]
    # A part of a larger gradient, of the same format: by each pass for itself. The input is copied for that of the weights alone.
    part = Tensor((2, 16, 2, 2), strides=(256, 4, 2, 1))
    assert backward(part, Tensor((2, 8, 4, 4)), w, [True, True, False]) == ["result", size, "conv_dgrad", -size, size, "conv_wgrad", "result", -size]
    inner = Tensor((2, 8, 4, 4), strides=(512, 16, 4, 1))
    assert backward(Tensor((2, 16, 2, 2)), inner, w, [True, False, False]) == []
    assert backward(Tensor((2, 16, 2, 2)), inner, w, [True, True, False]) == [1024, "conv_dgrad", "result", "conv_wgrad", "result", -1024]
    # Weights of 1 x 1 are channels last by their strides, and contiguous as well; doubles never are.
    point = Tensor((16, 8, 1, 1), strides=(8, 1, 8, 8))
    assert suggests_last(point) and not suggests_last(Tensor((16, 8, 1, 1))) and not suggests_last(Tensor((2, 1, 4, 4)))
    double = Tensor((2, 8, 4, 4), "float64", x.strides)
    assert format_of(made.torch, double, w) == "contiguous" and format_of(made.torch, x, w) == "channels_last"
    # PyTorch's own kernels for one channel per group: one way and the other.
    depthwise = (last_first(2, 8, 4, 4), Tensor((8, 1, 3, 3)), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 8)
    assert own_kernel(made.torch, func, depthwise) and in_order(lambda: made.convolve(func, depthwise, x, "")) == []
    assert own_kernel(made.torch, back, (x, *depthwise, [True, True, False])) and not own_kernel(made.torch, func, (x, w, *depthwise[2:8], 1))
    half = (last_first(2, 8, 4, 4, dtype="float16"), *depthwise[1:])
    assert not own_kernel(made.torch, func, half) and not own_kernel(made.torch, func, (*depthwise[:6], True, *depthwise[7:]))
    assert made.before(func, depthwise, x) == [8 * 9 * 4] and made.before(func, (inner, w, *depthwise[2:8], 1), x) == []


def check_norms():
    name, out = of("aten::native_layer_norm_backward"), (Tensor((87808, 96)), Tensor((96,)), Tensor((96,)))
    tell = lambda rows, columns, out: in_order(lambda: made.sum_of_norm(name, (None, Tensor((rows, columns)), [columns]), out, ""))
    # 28 pictures of 56 by 56: 2,744 parts of 32 rows, and a sum of these.
    assert tell(87808, 96, out) == [1053696, 1053696, ("reduce_rows", 2744, 96), 384, -384, ("reduce_rows", 2744, 96), 384, -384, -1053696, -1053696]
    assert tell(65536, 96, out) == [] and tell(87808, 66 * 32, out) == [] and tell(87808, 96, (out[0], None, None)) == []
    assert tell(4000000, 96, out)[0] == 32768 // 3 * 384  # no more parts than that
    assert in_order(lambda: made.sum_of_norm(of("aten::add"), (), out, "")) == []


def check_formats():
    grad, x = last_first(2, 8, 4, 4), Tensor((2, 8, 8, 8))
    assert after("aten::max_pool2d_with_indices_backward", (grad, x), x) == 2 * 8 * 16 * 4
    assert after("aten::max_pool2d_with_indices_backward", (grad, last_first(2, 8, 8, 8)), x) == 0
    inner = Tensor((2, 8, 8, 8), strides=(1024, 64, 8, 1))
    assert after("aten::avg_pool2d_backward", (grad, inner), x) == 2 * 8 * (16 + 64) * 4
    assert after("aten::_adaptive_avg_pool2d_backward", (grad, x), x) == 2 * 8 * 16 * 4
    assert after("aten::_adaptive_avg_pool2d_backward", (Tensor((2, 8, 4, 4)), last_first(2, 8, 8, 8)), x) == 0
    assert before("aten::_fused_rms_norm", (inner,)) == 2 * 8 * 64 * 4 and before("aten::_fused_rms_norm_backward", (None, inner)) == 2 * 8 * 64 * 4
    assert before("aten::cudnn_batch_norm_backward", (x, last_first(2, 8, 8, 8))) == 2 * 8 * 64 * 4
    assert before("aten::cudnn_batch_norm_backward", (x, x)) == 0


def check_layouts():
    names = "convolution convolution_backward native_layer_norm_backward native_batch_norm_backward hardswish_backward".split()
    aten = types.SimpleNamespace(**{name: types.SimpleNamespace(default=of(name)) for name in names})

    def empty_like(t, dtype, memory_format="preserve"):
        if memory_format == "channels_last":
            return last_first(*t.shape, dtype=dtype)
        return Tensor(t.shape, dtype, t.strides if memory_format == "preserve" else None)

    torch = types.SimpleNamespace(**{**made.torch.__dict__, "ops": types.SimpleNamespace(aten=aten), "empty_like": empty_like})
    laid = Layouts(types.SimpleNamespace(torch=torch, FakeTensor=Tensor), made.tracer.fake).as_gpu_does
    plain, last = Tensor((2, 8, 4, 4)), last_first(2, 8, 4, 4)
    # As an H200 lays them out.
    turned = Tensor((2, 7, 7, 8), strides=(392, 7, 1, 49))
    assert laid(of("native_layer_norm_backward"), (turned,), (turned, None, None))[0].is_contiguous()
    assert laid(of("native_batch_norm_backward"), (plain, last), (plain, None, None))[0].last
    assert not laid(of("native_batch_norm_backward"), (last, plain), (last, None, None))[0].last
    assert laid(of("hardswish_backward"), (plain, last), last).is_contiguous()
    assert laid(of("convolution"), (last, Tensor((16, 8, 2, 2))), Tensor((2, 16, 2, 2))).last
    assert laid(of("convolution"), (plain, last_first(16, 8, 2, 2)), Tensor((2, 16, 2, 2))).last
    assert not laid(of("convolution"), (Tensor((2, 8, 4, 4), "float64", last.strides), Tensor((16, 8, 2, 2))), Tensor((2, 16, 2, 2))).last
    assert laid(of("convolution"), (plain, Tensor((16, 8, 2, 2))), plain) is plain and laid(of("add"), (), plain) is plain


# What cuDNN says, and that it says nothing, of the largest batch that was traced.
def check_refusals():
    numbers = [16, 8, 3, 64, 1, 0, 0, 2, 32, 32, 16, 16, 2, 2, 2, 2, 0, 0, 1, 1]

    def rows(traced, refuses):
        answers = CudnnAnswers([(90, {})], True, False, False)
        for batch in traced:
            answers.saw(0, "float16", [16, batch, *numbers[2:]])
        ask = lambda device, benchmark, way, kind, x, *rest: None if refuses(x[0]) else (x[0] * 100, 0, 5, 0, 0, 1)
        cudnn = types.SimpleNamespace(device=lambda properties: None, ask=ask)
        return [(len(row), row[:1]) for _, _, _, row in answers.rows(cudnn)]

    assert rows([8], lambda batch: False)[0][0] > 3
    assert rows([8], lambda batch: batch == 8) == [(0, [])]  # whatever it says of others
    assert rows([8, 32], lambda batch: batch == 32) == [(0, [])]
    assert rows([8, 32], lambda batch: batch == 8)[0][0] > 3
    assert rows([8], lambda batch: batch == 16)[0][1] == [(1, 100, 0, 5, 0, 0, 1)]


check_sums()
check_losses()
check_orders()
check_copies()
check_softmax()
check_factors()
check_convolutions()
check_norms()
check_formats()
check_layouts()
check_refusals()
