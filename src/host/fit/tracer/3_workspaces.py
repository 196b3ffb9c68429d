# ---- what kernels ask for -----------------------------------------------------------------------------------------------------

# Operators whose kernels ask the allocator for memory of their own; src/fit/*_workspace.h say what the numbers are.
def tell_call(tracer, func, args, kwargs, out, site):
    name = func._schema.name
    if name == "aten::convolution":
        tell_forward(tracer, args, out, site)
    elif name == "aten::convolution_backward":
        for kind in (1, 2):
            if args[10][kind - 1]:
                tell_gradient(tracer, args, kind, site)
        if args[10][2]:
            tell_sum_of_bias(tracer, args)
    elif name in REDUCTIONS and len(args) > REDUCTIONS[name][0]:
        at, each = REDUCTIONS[name]
        over = args[at]
        numbers = rows_and_columns(args[0], [over] if type(over) is int else over) if over is not None and not isinstance(over, tracer.torch.Tensor) else None
        if numbers:
            each = each or max(first_of(out).element_size(), 4 if args[0].dtype.is_floating_point else 1)
            tracer.file.call(tracer.file.site("reduce_rows", "", tracer.source(), tracer.phase), numbers + ([each] if each != 4 else []))
    elif name in FFTS:
        fft(tracer, FFTS[name], args, out)
    elif name == "aten::embedding_dense_backward":
        tracer.file.call(tracer.file.site("embedding", "", tracer.source(), tracer.phase),
                         [args[1].numel(), args[2], args[0].shape[-1], max(args[0].element_size(), 4)])
    elif name == "aten::_embedding_bag_backward" and not args[9] and args[8] != 2:
        tracer.file.call(tracer.file.site("embedding_bag", "", tracer.source(), tracer.phase),
                         [args[1].numel(), args[6], args[0].shape[-1], max(args[0].element_size(), 4)])
    elif name in ATTENTION_BACKWARD:
        attention_call(tracer, args[1], args[2], 8 + ATTENTION_BACKWARD[name])
    elif name == "aten::_cudnn_rnn":
        recurrent(tracer, args[0], args[1], args[6], args[7], args[9], args[13], args[14], args[11] > 0 and args[12], False)
    elif name in MATMULS:
        a, b = [value for value in args if isinstance(value, tracer.torch.Tensor)][-2:]
        if a.dim() >= 2 and b.dim() >= 2:
            batch = a.shape[0] if a.dim() == 3 else 1
            tf32 = int(asked_tf32(tracer.torch.backends.cuda.matmul))
            with_bias = name == "aten::addmm" and args[0].dim() == 1
            tracer.file.call(tracer.file.site("matmul_bias" if with_bias else "matmul", "", tracer.source(), tracer.phase),
                             [a.element_size() * 8, tf32, batch, a.shape[-2], b.shape[-1], a.shape[-1]])


def tell_forward(tracer, args, out, site):
    x, w, _, stride, padding, dilation, transposed, _, groups = args[:9]
    conv(tracer, site, 0, x, w, out, stride, padding, dilation, transposed, groups)


# Of the data (1), of the weights (2).
def tell_gradient(tracer, args, kind, site):
    grad, x, w, _, stride, padding, dilation, transposed, _, groups = args[:10]
    conv(tracer, site, kind, x, w, grad, stride, padding, dilation, transposed, groups)


def tell_sum_of_bias(tracer, args):
    numbers = rows_and_columns(args[0], [0, *range(2, args[0].dim())])
    if numbers:
        tracer.file.call(tracer.file.site("reduce_rows", "", tracer.source(), tracer.phase), numbers)


# Over which dimensions, and bytes of what a thread keeps: of None those of its sum, of a value with its place 16, of a mean with
# its variance and count 16.
REDUCTIONS = {"aten::sum": (1, None), "aten::mean": (1, None), "aten::nansum": (1, None), "aten::prod": (1, None), "aten::linalg_vector_norm": (2, None),
              "aten::max": (1, 16), "aten::min": (1, 16), "aten::argmax": (1, 16), "aten::argmin": (1, 16),
              "aten::var": (1, 16), "aten::std": (1, 16), "aten::var_mean": (1, 16), "aten::std_mean": (1, 16), "aten::any": (1, 1), "aten::all": (1, 1)}


def first_of(out):
    return out[0] if isinstance(out, (tuple, list)) else out


FFTS = {"aten::_fft_r2c": 0, "aten::_fft_c2r": 1, "aten::_fft_c2c": 2}


def fft(tracer, kind, args, out):
    real = out if kind == 1 else args[0]  # of the transform's whole length
    lengths = [int(real.shape[dimension]) for dimension in args[1]]
    count = 1
    for length in lengths:
        count *= length
    bits = (out if kind == 1 else args[0]).element_size() * (4 if kind == 2 else 8)
    if count:
        tracer.file.call(tracer.file.site("fft", "", tracer.source(), tracer.phase), [kind, bits, int(real.numel()) // count, *lengths])


# What a transform copies before it begins: values that are no single run of transforms, and what goes to real ones, whose values it
# destroys (aten/src/ATen/native/cuda/SpectralOps.cpp).
def fft_copies(name, args):
    x = args[0]
    bytes = x.numel() * x.element_size()
    if FFTS[name] == 1:
        return [bytes]
    over = {int(dimension) % max(x.dim(), 1) for dimension in args[1]}
    rest = sorted((d for d in range(x.dim()) if d not in over and x.shape[d] > 1), key=x.stride, reverse=True)
    together = all(x.stride(a) == x.stride(b) * x.shape[b] for a, b in zip(rest, rest[1:]))
    return [] if together else [bytes]


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


ATTENTION_BACKWARD = {"aten::_scaled_dot_product_flash_attention_backward": 0, "aten::_scaled_dot_product_efficient_attention_backward": 1,
                      "aten::_scaled_dot_product_cudnn_attention_backward": 2}


# dtype bits, mode (0 relu, 1 tanh, 2 LSTM, 3 GRU), layers, directions, hidden size, elements of the input, sequence length,
# batch, bytes of the weights, dropout, packed, size of the input, backward, fp32 or fp16.
def recurrent(tracer, x, weights, mode, hidden, layers, both, packed, drops, backward):
    place = tracer.file.site("rnn", tracer.modules[-1] if tracer.modules else "", tracer.source(), tracer.phase)
    length, batch = (len(packed), packed[0]) if packed else x.shape[:2]
    tracer.file.call(place, [x.element_size() * 8, mode, layers, 2 if both else 1, hidden, x.numel(), length, batch,
                             sum(w.numel() * w.element_size() for w in weights), int(drops), int(bool(packed)), x.shape[-1],
                             int(backward), int(x.dtype in (tracer.torch.float32, tracer.torch.float16))])


MATMULS = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_addmm_activation", "aten::addmv", "aten::mv"}


def conv(tracer, site, kind, x, w, y, stride, padding, dilation, transposed, groups):
    spatial = x.dim() - 2
    each = lambda value: [int(v) for v in (list(value) * spatial if len(value) == 1 else value)]
    last = int(runs_last(tracer.torch, x, w))
    name = ("conv", "conv_dgrad", "conv_wgrad")[kind]
    place = tracer.file.site(name, tracer.modules[-1] if tracer.modules else "", tracer.source(), tracer.phase)
    numbers = [x.element_size() * 8, x.shape[0], x.shape[1], y.shape[1], groups, int(transposed), last, spatial]
    numbers += [int(v) for v in (*x.shape[2:], *y.shape[2:], *w.shape[2:])] + each(stride) + each(padding) + each(dilation)
    tracer.file.call(place, numbers)
    tracer.convolution(kind, x.dtype, [int(v) for v in numbers])


