# ---- what kernels take beside their results -----------------------------------------------------------------------------------

# PyTorch's own kernels ask for memory that no dispatcher sees: operands in one piece, in another type, sums in parts, keys that are
# sorted. The rules below are what an H200 with torch 2.11 allocated in 5,902 samples of operators, each forward and backward (2,506
# at sizes of training, the others of torch.testing's op_db); what stays below a few KiB is left out.
class Blocks:
    SORTED_BY_PARTS = 4096  # longest row that sort() keeps in a thread block (aten/src/ATen/native/cuda/Sort.cpp)
    FEW_ROWS = 128  # fewer of them are sorted with two more copies
    AVERAGED = ("aten::mse_loss", "aten::smooth_l1_loss", "aten::binary_cross_entropy", "aten::soft_margin_loss")
    MULTIPLIED = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1}  # the first of the two factors
    ADDED = ("aten::sum", "aten::mean", "aten::prod", "aten::nansum")
    SCANNED = ("aten::cumsum", "aten::cumprod")
    IN_ONE_PIECE = {"aten::_softmax": 1, "aten::_log_softmax": 1, "aten::_log_softmax_backward_data": 2, "aten::upsample_bicubic2d_backward": 1,
                    "aten::_upsample_bilinear2d_aa": 1, "aten::_upsample_bilinear2d_aa_backward": 1}  # so many operands, behind the result
    # The gradient and the input in the format of the input; behind the result.
    AS_THE_INPUT = ("aten::max_pool2d_with_indices_backward", "aten::avg_pool2d_backward")
    NORMS = ("aten::native_layer_norm_backward", "aten::_fused_rms_norm_backward")
    MANY_ROWS, MOST_PARTS, HALF_THE_MULTIPROCESSORS = 65536, 32768, 66  # the last of an H100
    PUTS = ("aten::index_put", "aten::index_put_", "aten::_index_put_impl_", "aten::_unsafe_index_put")

    def __init__(self, tracer):
        self.tracer = tracer
        torch = self.torch = tracer.torch
        self.formats = {4: torch.channels_last, 5: torch.channels_last_3d}

    def last_first(self, tensor):
        return tensor.dim() in self.formats and suggests_last(tensor)

    # That of cuDNN for a convolution of these, which knows no channels last of doubles.
    def format_of(self, x, weights):
        return self.formats[x.dim()] if runs_last(self.torch, x, weights) else self.torch.contiguous_format

    # All of them at once, for as long as nothing else happens.
    def tell(self, sizes):
        if sizes:
            tracer = self.tracer
            site = tracer.file.site("temporary", tracer.modules[-1] if tracer.modules else "", tracer.source(), tracer.phase)
            for storage in [tracer.file.alloc(size, site) for size in sizes]:
                tracer.file.free(storage)

    # Bytes that an operator takes before its result, for as long as it runs.
    def before(self, func, args, out):
        aten = self.torch.ops.aten
        name = func._schema.name
        wanted = self.torch.contiguous_format
        together = ()
        if func is aten.convolution.default:
            operands, together = args[:2] if self.own_kernel(func, args) else (), args[:2]
        elif func is aten.convolution_backward.default:
            operands, together = args[:3] if self.own_kernel(func, args) else (), args[1:3]
        elif func in (aten._cudnn_rnn.default, aten.native_layer_norm.default, aten.embedding_dense_backward.default):
            operands = args[:1]
        elif func is aten.native_layer_norm_backward.default:
            operands = args[:2]
        elif name in ("aten::_fused_rms_norm", "aten::_fused_rms_norm_backward"):
            operands = args[:1] if name == "aten::_fused_rms_norm" else args[1:2]
        elif name == "aten::cudnn_batch_norm_backward":
            operands, together = args[1:2], args[:1]
        elif name in FFTS:
            return fft_copies(name, args)
        elif name in self.MULTIPLIED:
            first = self.MULTIPLIED[name]
            return [size_of(factor) for factor in args[first:first + 2] if factor.numel() and not multiplies(factor)]
        elif func is aten.roll.default:
            return [size_of(out)] if len(args) > 2 and len(args[2]) > 1 and out.numel() else []
        elif name == "aten::huber_loss":
            return [largest(args[:2]) * out.element_size()] if reduced(args, 2) else []
        elif name == "aten::count_nonzero":
            return [args[0].numel()] if args[0].numel() else []
        elif name in ("aten::im2col", "aten::col2im"):
            return [size_of(args[0])] if size_of(args[0]) < size_of(out) else []
        elif name == "aten::masked_scatter_backward":  # where the mask holds, as often as there are values
            return [out.numel() * args[0].dim() * 8] if out.numel() else []
        else:
            return []
        if len(together) == 2:
            wanted = self.format_of(*together)
        elif together and self.last_first(together[0]):
            wanted = self.formats[together[0].dim()]
        return [size_of(t) for t in operands if t is not None and t.numel() and not t.is_contiguous(memory_format=wanted)]

    # Gradients of a norm's weights over many short rows are summed in parts, 32 rows each, and then again
    # (aten/src/ATen/native/cuda/layer_norm_kernel.cu); to the byte on an H200.
    def sum_of_norm(self, func, args, out, site):
        tracer, name = self.tracer, func._schema.name
        if name not in self.NORMS:
            return
        x, shape, weights = args[1], args[2], [t for t in out[1:] if t is not None and t.numel()]
        columns = 1
        for length in shape:
            columns *= int(length)
        rows = x.numel() // max(columns, 1)
        if not weights or rows <= self.MANY_ROWS or columns // 32 >= self.HALF_THE_MULTIPROCESSORS:
            return
        parts = min(-(-rows // 32), self.MOST_PARTS // -(-columns // 32))
        storages = [tracer.file.alloc(parts * size_of(t), site) for t in weights]
        for t in weights:
            tracer.file.call(tracer.file.site("reduce_rows", "", tracer.source(), tracer.phase), [parts, columns])
            tracer.file.free(tracer.file.alloc(size_of(t), site))
        for storage in storages:
            tracer.file.free(storage)

    # Of one channel per group, which PyTorch's own kernels make.
    def own_kernel(self, func, args):
        at = 0 if func is self.torch.ops.aten.convolution.default else 1
        x, w, transposed, groups = args[at], args[at + 1], args[at + 6], args[at + 8]
        half_last = self.last_first(x) and x.dtype != self.torch.float32
        return groups == x.shape[1] > 1 and w.shape[1] == 1 and not transposed and not half_last

    # A convolution of cuDNN that copies operands, in the order of aten/src/ATen/native/Convolution.cpp and cudnn/ConvShared.cpp: the
    # input before, the weights behind the result; the gradient before where it is of another format, else, where it is a part of a
    # larger one, by each pass for itself; that of the bias is a sum when all of these are gone. False: nothing to copy, or another kernel.
    def convolve(self, func, args, out, site):
        aten, tracer = self.torch.ops.aten, self.tracer
        forward = func is aten.convolution.default
        if not forward and func is not aten.convolution_backward.default or self.own_kernel(func, args):
            return False
        grad, x, weights = (None, *args[:2]) if forward else args[:3]
        wants = (True, False, False) if forward else args[10]
        wanted = self.format_of(x, weights)
        aside = lambda t: t is not None and t.numel() > 0 and not t.is_contiguous(memory_format=wanted)
        x_aside, grad_aside, weights_aside = aside(x) and (forward or wants[1]), aside(grad), aside(weights) and wants[0]
        if not (x_aside or grad_aside or weights_aside):
            return False
        other_format = grad_aside and (args[7] or self.last_first(grad) != (self.last_first(x) if not x_aside else wanted != self.torch.contiguous_format))
        take = lambda *tensors: [tracer.file.alloc(size_of(t), site) for t in tensors]
        held = take(*[t for t, is_aside in ((x, x_aside), (grad, other_format)) if is_aside])
        each = [grad] if grad_aside and not other_format else []

        def release(storages):
            for storage in storages:
                tracer.file.free(storage)

        if wants[0]:
            behind = [*([weights] if weights_aside else []), *each]
            tell = lambda: tell_forward(tracer, args, out, site) if forward else tell_gradient(tracer, args, 1, site)
            if not behind:  # the call then names what follows it
                tell()
            tracer.tell(out if forward else out[0], site)
            copies = take(*behind)
            if behind:
                tell()
            release(copies)
        if wants[1]:
            copies = take(*each)
            tell_gradient(tracer, args, 2, site)
            tracer.tell(out[1], site)
            release(copies)
        release(held)
        if wants[2]:
            tell_sum_of_bias(tracer, args)
        return True

    # Bytes that it takes when its result is there.
    def after(self, func, args, kwargs, out):
        name = func._schema.name
        x = args[0] if args and isinstance(args[0], self.torch.Tensor) else None
        if x is None or not x.numel():
            return []
        if name in self.ADDED or name in self.SCANNED:
            fused = name in self.ADDED and x.dtype in (self.torch.float16, self.torch.bfloat16) and out.dtype == self.torch.float32
            return [x.numel() * out.element_size()] if x.dtype != out.dtype and not fused else []
        if name == "aten::count_nonzero":
            return [x.numel() * 8]
        if name in ("aten::mse_loss", "aten::smooth_l1_loss"):
            return [largest(args[:2]) * out.element_size()] if reduced(args, 2) else []
        if name in self.AS_THE_INPUT and len(args) > 1:
            wanted = self.formats[args[1].dim()] if self.last_first(args[1]) else self.torch.contiguous_format
            return [size_of(t) for t in args[:2] if not t.is_contiguous(memory_format=wanted)]
        if name == "aten::_adaptive_avg_pool2d_backward":  # by strides where the input is channels last
            return [] if self.last_first(args[1]) or args[0].is_contiguous() else [size_of(args[0])]
        if name in self.IN_ONE_PIECE:
            return [size_of(t) for t in args[:self.IN_ONE_PIECE[name]] if not t.is_contiguous()]
        if name in self.PUTS:
            return self.of_sums_by_index(args)
        if name == "aten::sort":
            return self.of_sort(x, args, kwargs)
        if name in ("aten::masked_scatter", "aten::masked_scatter_"):  # how many of the mask hold before each
            return [out.numel() * 8]
        if name == "aten::scatter_reduce" and args[4] == "mean":
            return [size_of(out), size_of(out), out.numel()]
        if name in UNIQUE:  # sorted, and once more with where they came from
            return [size_of(x)] * (4 if out[1].numel() else 2)
        if name == "aten::logsumexp":  # its input less the greatest, and those
            return [size_of(x) + size_of(out)]
        if name == "aten::_safe_softmax":  # which rows are masked whole
            return [x.numel()]
        if name == "aten::_softmax_backward_data":  # gradient times output
            return [size_of(x)]
        if name == "torchvision::nms":  # which boxes overlap, a bit for each two
            return [len(x) * ((len(x) + 63) // 64) * 8]
        if name == "aten::multinomial":
            return [size_of(x)] * (3 if len(args) > 2 and args[2] else 1)
        if name == "aten::abs" and x.is_complex():
            return [size_of(x)]
        if name in ("aten::adaptive_max_pool2d", "aten::adaptive_max_pool2d_backward") and not args[-1 if name.endswith("backward") else 0].is_contiguous():
            return [size_of(t) for t in (x, *(out if isinstance(out, tuple) else (out, args[-1])))]
        if name == "aten::_cdist_backward":
            return [args[1].numel() * args[2].shape[-2] * x.element_size()] if args[3] else []
        if name == "aten::_pdist_backward":
            return [args[1].numel() * (args[1].shape[0] - 1) * x.element_size()]
        if name in ("torchvision::deform_conv2d", "torchvision::_deform_conv2d_backward"):
            return self.of_deformed(args if name.endswith("2d") else args[1:], out)
        return []

    # Gradients that meet in the same places are sorted by them: six numbers for each (aten/src/ATen/native/cuda/Indexing.cu).
    def of_sums_by_index(self, args):
        indices = [index for index in args[1] if index is not None]
        if len(args) < 4 or not args[3] or any(index.dtype in (self.torch.bool, self.torch.uint8) for index in indices):
            return []
        count = self.torch.broadcast_shapes(*(index.shape for index in indices)).numel()
        return [count * 8] * 6 if count else []

    def of_sort(self, x, args, kwargs):
        dim = kwargs.get("dim", next((value for value in args[1:] if type(value) is int), -1))
        length = x.shape[dim] if x.dim() else 1
        if length <= self.SORTED_BY_PARTS:
            return []
        rows, each = x.numel() // length, x.element_size()
        more = [x.numel() * 8, size_of(x)] if 1 < rows < self.FEW_ROWS else []
        return [x.numel() * 8, x.numel() * (each + 8), *more]

    # What the kernel reads of its input for each place of its output, of at most 32 pictures at once.
    def of_deformed(self, args, out):
        x, weight, offset = args[:3]
        pictures = next(count for count in range(min(32, x.shape[0]), 0, -1) if x.shape[0] % count == 0)
        columns = x.shape[1] * weight.shape[2] * weight.shape[3] * pictures * offset.shape[2] * offset.shape[3] * x.element_size()
        return [columns] + [size_of(out)] * 2 if isinstance(out, self.torch.Tensor) else [columns]

    # A mean is made in the storage of what it is the mean of, what is folded in one that has the size of what it is made of.
    def as_made(self, func, args, kwargs, out):
        name = func._schema.name
        if name in self.AVERAGED:
            reduction_at = 3 if name == "aten::binary_cross_entropy" else 2
            size = largest(args[:2]) if reduced(args, reduction_at) and "reduction" not in kwargs else 0
        elif name in ("aten::im2col", "aten::col2im"):
            size = args[0].numel() if args[0].dtype == out.dtype else 0
        else:
            return out
        if size <= out.numel():
            return out
        with self.tracer.fake:
            return self.torch.empty(size, dtype=out.dtype, device="cuda").as_strided(out.shape, out.stride())


# Whether PyTorch takes a picture or a volume for channels last: by its strides, whatever has a length of 1 (c10/core/MemoryFormat.h).
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
    return x.dim() in (4, 5) and x.dtype != torch.float64 and (suggests_last(x) or suggests_last(weights))


def size_of(tensor):
    return tensor.numel() * tensor.element_size()


def largest(tensors):
    return max(t.numel() for t in tensors)


def reduced(args, at):
    return len(args) <= at or args[at] != 0


# cuBLAS takes a matrix whose rows or columns are each in one piece; another one is copied (prepare_matrix_for_cublas).
def multiplies(tensor):
    if tensor.is_contiguous():
        return True
    rows, columns = tensor.shape[-2:]
    across, along = tensor.stride()[-2:]
    return along == 1 and across >= max(1, columns) or across == 1 and along >= max(1, rows)


# Not as for tracers, whose way compares with all classes at once (aten/src/ATen/native/Onehot.cpp).
def patch_one_hot(tracer):
    torch = tracer.torch
    real = torch.nn.functional.one_hot

    def one_hot(*args, **kwargs):
        tensor = args[0] if args else kwargs.get("input", kwargs.get("self"))
        classes = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
        if tracer.compiling or type(classes) is not int or classes <= 0 or getattr(tensor, "fake_mode", None) is not tracer.fake or tensor.dtype != torch.int64:
            return real(*args, **kwargs)
        out = torch.zeros((*tensor.shape, classes), dtype=torch.int64, device="cuda")
        return out.scatter_(-1, tensor.unsqueeze(-1), 1)

    as_builtin(torch, one_hot, "aten::one_hot")
    torch.nn.functional.one_hot = one_hot
    torch._C._nn.one_hot = one_hot


