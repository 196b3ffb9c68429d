# SPDX-License-Identifier: Apache-2.0
"""Runs at the start of every Python below `cufit fit`: lets a training program run on a machine without a GPU, for a few
steps and without its arithmetic, and writes what its tensors would have asked of the CUDA caching allocator.

What is on the CPU stays real (data loaders, tokenizers, random crops); what goes to `cuda` becomes a fake tensor: a shape, a
type and a storage that holds nothing. Small tensors that began as real data keep their values in a shadow on the CPU, so that
a mask or a length can be read; any other value that the program reads is made up, and the event file says where.
Needs torch 2.4 or later, built with CUDA, and nothing else."""
import io
import os
import sys


# ---- the event file ---------------------------------------------------------------------------------------------------------

class EventFile:
    """Records as `formats/trace_events.h` tells them; every number a LEB128 varint."""

    TEXT, SITE, ALLOC, FREE, MARK, CALL, CATEGORY, NOTE, FACT, END = range(1, 11)

    def __init__(self, path):
        self.path = path
        self.out = io.BytesIO(b"")
        self.out.write(b"CUFITEV1")
        self.on_disk = False
        self.texts = {}
        self.sites = {}
        self.notes = set()
        self.storages = 0
        self.closed = False

    def _write(self, kind, *numbers):
        if self.closed:
            return
        record = bytearray((kind,))
        for number in numbers:
            while number > 0x7F:
                record.append(number & 0x7F | 0x80)
                number >>= 7
            record.append(number)
        self.out.write(record)

    # A launcher (torchrun, accelerate) imports torch, too, and allocates nothing: the file belongs to the first process that
    # does. False where another process has it.
    def begin(self):
        if self.on_disk:
            return True
        try:
            file = open(self.path, "xb", buffering=1 << 20)
        except FileExistsError:
            self.closed = True
            return False
        file.write(self.out.getvalue())
        self.out = file
        self.on_disk = True
        return True

    def text(self, text):
        number = self.texts.get(text)
        if number is None:
            number = self.texts[text] = len(self.texts)
            data = text.encode("utf-8", "replace")
            self._write(self.TEXT, len(data))
            self.out.write(data)
        return number

    def site(self, op, module, source, phase):
        key = (op, module, source, phase)
        number = self.sites.get(key)
        if number is None:
            texts = self.text(op), self.text(module), self.text(source)
            number = self.sites[key] = len(self.sites)
            self._write(self.SITE, *texts, phase)
        return number

    def alloc(self, size, site):
        self._write(self.ALLOC, size, site)
        self.storages += 1
        return self.storages - 1

    def free(self, storage):
        self._write(self.FREE, self.storages - 1 - storage)

    def category(self, storage, category):
        self._write(self.CATEGORY, self.storages - 1 - storage, category)

    def mark(self, kind):
        self._write(self.MARK, kind)

    def call(self, site, numbers):
        self._write(self.CALL, site, len(numbers), *numbers)

    def note(self, kind, detail, source):
        key = (kind, detail, source)
        if key not in self.notes and len(self.notes) < 1000:
            self.notes.add(key)
            self._write(self.NOTE, self.text(kind), self.text(detail[:4000]), self.text(source))

    def fact(self, key, value):
        self._write(self.FACT, self.text(key), self.text(str(value)))

    def end(self, reason):
        if not self.closed and self.begin():
            self._write(self.END, reason)
            self.out.close()
            self.closed = True


STEP_BEGINS, STEP_ENDS = 0, 1
PARAMETER, BUFFER, GRADIENT, OPTIMIZER_STATE, INPUT = range(1, 6)
SETUP, FORWARD, BACKWARD, OPTIMIZER, OTHER = range(5)
SEEN, ENDED, FAILED = range(3)


def settings():
    value = {key: os.environ.get("CUFIT_FIT_" + key) for key in ("OUT", "BATCH", "STEPS", "FUNCTION", "SCRATCH", "GPU")}
    value["BATCH"] = int(value["BATCH"]) if value["BATCH"] else None
    value["STEPS"] = int(value["STEPS"] or 3)
    name, capability, total = (value["GPU"] or "NVIDIA H200,9.0,150110011392").rsplit(",", 2)
    value["GPU"] = name, tuple(int(part) for part in capability.split(".")), int(total)
    return value


# ---- the tracer -------------------------------------------------------------------------------------------------------------

class Tracer:
    SHADOW_ELEMENTS = 1 << 20
    SHADOW_FLOATS = 1 << 16
    FAKE_EMPTY_ELEMENTS = 4096  # uninitialised CPU tensors of this size and more hold nothing worth keeping

    def __init__(self, torch, wanted):
        self.torch = torch
        self.wanted = wanted
        self.gpu_name, self.capability, self.total = wanted["GPU"]
        self.file = EventFile(wanted["OUT"])
        self.phase = SETUP
        self.steps = 0
        self.modules = []  # names of those whose forward runs
        self.module_names = {}
        self.known = {}  # id of a module whose parameters were told
        self.allocated = self.peak = 0
        self.finished = False
        self.loaders = 0
        self.optimizers = 0
        self.first_round, self.round, self.stepped = [], None, set()
        self.by_function = False
        self.dropout_state = None
        self.own = os.path.dirname(os.path.abspath(__file__))
        self.library = os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))
        self.prefixes = {sys.prefix, sys.base_prefix, self.library, os.path.dirname(os.__file__)}
        self.sources = {}

    # The user's own line: the innermost frame that is in no library.
    def source(self):
        frame = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            own = self.sources.get(code)
            if own is None:
                path = os.path.abspath(code.co_filename)
                outside = code.co_filename.startswith("<") or any(path.startswith(prefix + os.sep) for prefix in self.prefixes)
                own = self.sources[code] = "" if outside or path.startswith(self.own) else os.path.relpath(path)
            if own:
                return "%s:%d" % (own, frame.f_lineno)
            frame = frame.f_back
        return ""

    def install(self):
        torch = self.torch
        import torch._subclasses.fake_tensor as fake_tensor
        from torch.utils.weak import WeakIdKeyDictionary

        if not torch.version.cuda:
            raise RuntimeError("this torch (%s) is built without CUDA" % torch.__version__)
        torch._C._ensureCUDADeviceGuardSet()
        torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(..., device="cuda") goes through the mode
        fake_tensor.init_gpu_context = lambda *args: None
        fake_tensor.FakeTensorMode.avoid_device_init = property(lambda self: True)
        fake_tensor.FakeTensorMode.__deepcopy__ = lambda self, memo: self  # a copied parameter stays in this mode
        self.FakeTensor = fake_tensor.FakeTensor
        # transformers looks here whether somebody traces, and then takes other ways than it takes on a GPU.
        torch._subclasses.FakeTensor = type("FakeTensor", (fake_tensor.FakeTensor,), {})
        self.fake = fake_tensor.FakeTensorMode(allow_non_fake_inputs=True, allow_fallback_kernels=False)
        self.DataDependent = fake_tensor.DataDependentOutputException
        self.DynamicShape = fake_tensor.DynamicOutputShapeException
        self.Unsupported = fake_tensor.UnsupportedOperatorException
        self.storages = WeakIdKeyDictionary()
        self.shadows = WeakIdKeyDictionary()
        pretend_cuda(self)
        patch_modules(self)
        patch_optimizers(self)
        patch_loaders(self)
        patch_attention(self)
        patch_recurrent(self)
        patch_saving(self)
        for key, value in (("torch", torch.__version__), ("python", sys.version.split()[0]), ("cuda", torch.version.cuda),
                           ("steps", self.wanted["STEPS"]), ("method", "fake cuda"),
                           ("alloc_conf", os.environ.get("PYTORCH_ALLOC_CONF", os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""))),
                           ("cublas_workspace_config", os.environ.get("CUBLAS_WORKSPACE_CONFIG", ""))):
            self.file.fact(key, value)
        if self.wanted["BATCH"]:
            self.file.fact("batch", self.wanted["BATCH"])
        self.mode = make_mode(self)
        self.mode.__enter__()

    # -- allocations

    def tell(self, value, site):
        torch = self.torch
        if isinstance(value, torch.Tensor):
            if isinstance(value, self.FakeTensor) and value.fake_device.type == "cuda":
                self.tell_storage(value.untyped_storage(), site)
        elif isinstance(value, (list, tuple)):
            for item in value:
                self.tell(item, site)

    def tell_storage(self, storage, site):
        import weakref
        if storage in self.storages:
            return
        size = int(storage.nbytes())
        if size == 0:
            return
        if not self.file.on_disk and not self.file.closed and not self.file.begin():
            sys.stderr.write("cufit: a second process of this program uses the GPU; one is traced\n")
            sys.stderr.flush()
            os._exit(3)
        number = self.file.alloc(size, site)
        self.storages[storage] = number
        self.allocated += size
        self.peak = max(self.peak, self.allocated)
        weakref.finalize(storage, self.released, number, size).atexit = False

    def released(self, number, size):
        self.allocated -= size
        self.file.free(number)

    def categorise(self, tensor, category):
        if isinstance(tensor, self.FakeTensor) and tensor.fake_device.type == "cuda":
            number = self.storages.get(tensor.untyped_storage())
            if number is not None:
                self.file.category(number, category)

    # -- steps

    def step_begins(self):
        if self.phase == SETUP:
            self.file.mark(STEP_BEGINS)
            self.phase = FORWARD

    # A training step is over when each optimizer that takes part has stepped; with several (a GAN), which take part shows when
    # one steps for the second time.
    def optimizer_steps(self, number):
        if self.by_function:
            return
        if self.optimizers == 1:
            self.step_ends()
            return
        if self.round is None and number not in self.first_round:
            self.first_round.append(number)
            return
        if self.round is None:
            self.round = set(self.first_round)
            self.step_ends()
        self.stepped.add(number)
        if self.stepped >= self.round:
            self.stepped.clear()
            self.step_ends()

    def step_ends(self):
        self.file.mark(STEP_ENDS)
        self.steps += 1
        if self.steps >= self.wanted["STEPS"]:
            # zero_grad may stand behind the step; the steps before have shown it.
            self.finish(SEEN)
        self.file.mark(STEP_BEGINS)
        self.phase = FORWARD

    def finish(self, reason):
        if reason == ENDED and self.steps >= self.wanted["STEPS"]:
            reason = SEEN
        self.finished = True
        torch = self.torch
        self.file.fact("cudnn_benchmark", int(torch.backends.cudnn.benchmark))
        self.file.fact("allow_tf32", int(torch.backends.cuda.matmul.allow_tf32))
        self.file.end(reason)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0 if reason == SEEN else 1)


# ---- operators --------------------------------------------------------------------------------------------------------------

def make_mode(tracer):
    torch = tracer.torch
    from torch.utils._python_dispatch import TorchDispatchMode
    import torch.utils._pytree as pytree

    aten = torch.ops.aten
    FakeTensor = tracer.FakeTensor
    fake = tracer.fake
    shadows = tracer.shadows
    empties = {aten.empty.memory_format, aten.empty_strided.default}
    verdicts = {aten.isnan.default: 0, aten.isinf.default: 0, aten.isfinite.default: 1}

    def shadow_of(tensor):
        if isinstance(tensor, FakeTensor):
            return shadows.get(tensor)
        return tensor

    def is_cuda(device):
        return device is not None and torch.device(device).type == "cuda"

    def real_call(func, args, kwargs):
        if kwargs.get("pin_memory"):
            kwargs = dict(kwargs, pin_memory=False)
        return func(*args, **kwargs)

    def without_device(kwargs):
        out = dict(kwargs)
        if "device" in out:
            out["device"] = torch.device("cpu")
        out.pop("non_blocking", None)
        return out

    # The same operator over the values, where every tensor has some and they are few.
    def shadow_call(func, args, kwargs, tensors):
        total = 0
        for tensor in tensors:
            value = shadow_of(tensor)
            if value is None:
                return None
            total += value.numel()
        if total > tracer.SHADOW_ELEMENTS:
            return None
        if not tensors:
            sizes = [size for size in pytree.tree_leaves(args) if isinstance(size, int)]
            product = 1
            for size in sizes:
                product *= max(size, 1)
            if product > tracer.SHADOW_ELEMENTS:
                return None
        try:
            args, kwargs = pytree.tree_map_only(torch.Tensor, shadow_of, (args, kwargs))
            return func(*args, **without_device(kwargs))
        except Exception:
            return None

    def pair(out, values):
        flat, flat_values = pytree.tree_leaves(out), pytree.tree_leaves(values)
        if len(flat) != len(flat_values):
            return
        for tensor, value in zip(flat, flat_values):
            if isinstance(tensor, FakeTensor) and isinstance(value, torch.Tensor) and tensor.shape == value.shape:
                shadows[tensor] = value

    def forget(func, args, kwargs):
        for argument, value in zip(func._schema.arguments, args):
            if argument.alias_info is not None and argument.alias_info.is_write:
                for tensor in pytree.tree_leaves(value):
                    if isinstance(tensor, FakeTensor) and tensor in shadows:
                        del shadows[tensor]

    def value_of(func, tensor):
        value = shadows.get(tensor)
        if value is not None and value.numel() == 1:
            return func(value)
        hint = getattr(tensor, "_cufit_verdict", None)
        if hint is not None:
            return hint
        stand_in = False if tensor.dtype == torch.bool else 1.0 if tensor.dtype.is_floating_point else 1
        tracer.file.note("data_dependent", "%s value read; %s was given" % (str(tensor.dtype)[6:], stand_in), tracer.source())
        return stand_in

    # What cuDNN keeps of a recurrent layer for its backward, of which the fake kernel knows nothing: so many values per element
    # of the output, and a bit per element where it drops out. Equal to what torch 2.11 with cuDNN 9.19 kept on an H100 for 42
    # LSTM and GRU layers, to the byte.
    def with_reserve(args, out):
        x, mode, hidden, layers, dropout, both = args[0], args[6], args[7], args[9], args[11], args[13]
        each = {2: 5, 3: 6}.get(mode, 1) * layers + layers - 1
        elements = x.shape[0] * x.shape[1] * hidden * (2 if both else 1)
        size = each * elements * x.element_size() + 256
        if dropout > 0:
            size += (layers - 1) * (elements // 8)
        with fake:
            reserve = torch.empty(size, dtype=torch.uint8, device="cuda")
        return out[:3] + (reserve,) + out[4:]

    # It has no fake kernel: gradients of the input, the states and, side by side, the weights.
    def recurrent_backward(*args):
        x, weights, hx, cx = args[0], args[1], args[4], args[5]
        whole = torch.empty(sum(w.numel() for w in weights), dtype=x.dtype, device="cuda")
        parts, at = [], 0
        for w in weights:
            parts.append(whole[at:at + w.numel()].view(w.shape))
            at += w.numel()
        return torch.empty_like(x), torch.empty_like(hx), torch.empty_like(cx) if cx is not None else torch.empty(0, device="cuda"), parts

    formats = {4: torch.channels_last, 5: torch.channels_last_3d}

    def last_first(tensor):
        return tensor.dim() in formats and tensor.is_contiguous(memory_format=formats[tensor.dim()]) and not tensor.is_contiguous()

    # Bytes that an operator takes for as long as it runs, to have its operands in one piece and in one memory format.
    def copied(func, args):
        if func is aten.convolution.default:
            operands, together = args[:2], args[:2]
        elif func is aten.convolution_backward.default:
            operands, together = args[:3], args[1:3]
        elif func is aten._cudnn_rnn.default:
            operands, together = args[:1], ()
        elif func is aten._cudnn_rnn_backward.default:
            operands, together = (args[0], args[7]), ()
        elif func is aten.native_layer_norm.default:
            operands, together = args[:1], ()
        elif func is aten.native_layer_norm_backward.default:
            operands, together = args[:2], ()
        else:
            return []
        wanted = torch.contiguous_format
        if any(last_first(t) for t in together):
            wanted = formats[together[0].dim()]
        return [t.numel() * t.element_size() for t in operands if t is not None and t.numel() and not t.is_contiguous(memory_format=wanted)]

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            tensors = [value for value in pytree.tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
            device = kwargs.get("device")
            any_fake = any(isinstance(tensor, FakeTensor) for tensor in tensors)
            if not any_fake and not is_cuda(device):
                if func in empties and not tensors:
                    count = 1
                    for size in args[0]:
                        count *= size
                    if count >= tracer.FAKE_EMPTY_ELEMENTS:
                        with fake:
                            return func(*args, **dict(kwargs, pin_memory=False) if kwargs.get("pin_memory") else kwargs)
                return real_call(func, args, kwargs)
            if func is aten._local_scalar_dense.default:
                return value_of(func, args[0])
            if func is aten.is_pinned.default:
                return False
            if func is aten._pin_memory.default:
                return args[0]
            values = None
            written = func._schema.is_mutable
            if all(t.numel() <= tracer.SHADOW_FLOATS or not t.dtype.is_floating_point for t in tensors):
                dtype = kwargs.get("dtype")
                drawn = torch.Tag.nondeterministic_seeded in func.tags
                if tensors or func not in empties and (not drawn or dtype is not None and not dtype.is_floating_point):
                    values = shadow_call(func, args, kwargs, tensors)
            if written and values is None:
                forget(func, args, kwargs)
            try:
                with fake:
                    out = (recurrent_backward if func is aten._cudnn_rnn_backward.default else func)(*args, **kwargs)
            except (tracer.DynamicShape, tracer.DataDependent):
                if values is None:
                    values = shadow_call(func, args, kwargs, tensors)
                if values is None:
                    tracer.file.note("data_dependent", "the shape of what %s returns depends on values" % func, tracer.source())
                    raise
                with fake:
                    out = pytree.tree_map_only(torch.Tensor, lambda t: torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="cuda"), values)
            except tracer.Unsupported:
                tracer.file.note("no_fake_kernel", str(func), tracer.source())
                raise
            if func is aten._cudnn_rnn.default and kwargs.get("train", args[12] if len(args) > 12 else True):
                out = with_reserve(args, out)
            if values is not None:
                pair(out, values)
            elif func in verdicts and isinstance(out, FakeTensor):
                out._cufit_verdict = bool(verdicts[func])
            elif tensors and isinstance(out, FakeTensor) and out.dtype == torch.bool and out.numel() == 1:
                hint = getattr(tensors[0], "_cufit_verdict", None)
                if hint is not None:
                    out._cufit_verdict = (not hint) if func is aten.logical_not.default else hint
            name = func.__name__ if hasattr(func, "__name__") else str(func)
            site = tracer.file.site(name.split(".")[0], tracer.modules[-1] if tracer.modules else "", tracer.source(), tracer.phase)
            tell_call(tracer, func, args, kwargs, out, site)
            copies = [tracer.file.alloc(size, site) for size in copied(func, args)]
            if func is aten.native_dropout.default:  # the mask is made first
                tracer.tell(out[1], site)
            tracer.tell(out, site)
            for storage in copies:
                tracer.file.free(storage)
            if device is not None and tensors and not isinstance(tensors[0], FakeTensor):
                tracer.categorise(out, INPUT)
            return out

    return Mode()


# Operators whose kernels ask the allocator for memory of their own. Numbers as the plan of the file says.
def tell_call(tracer, func, args, kwargs, out, site):
    name = func._schema.name
    if name == "aten::convolution":
        x, w, _, stride, padding, dilation, transposed, _, groups = args[:9]
        conv(tracer, site, 0, x, w, out, stride, padding, dilation, transposed, groups)
    elif name == "aten::convolution_backward":
        grad, x, w, _, stride, padding, dilation, transposed, _, groups, mask = args[:11]
        for kind, wanted in ((1, mask[0]), (2, mask[1])):
            if wanted:
                conv(tracer, site, kind, x, w, grad, stride, padding, dilation, transposed, groups)
    elif name == "aten::sum" and len(args) > 1 and args[0].dim() == 2 and list(args[1] or ()) == [0] and args[0].is_contiguous():
        tracer.file.call(tracer.file.site("reduce_rows", "", tracer.source(), tracer.phase), list(args[0].shape))
    elif name == "aten::_safe_softmax":  # which rows are masked whole
        tracer.file.call(tracer.file.site("temporary", "", tracer.source(), tracer.phase), [args[0].numel()])
    elif name == "aten::_softmax_backward_data":  # gradient times output
        tracer.file.call(tracer.file.site("temporary", "", tracer.source(), tracer.phase), [args[0].numel() * args[0].element_size()])
    elif name in ATTENTION_BACKWARD:
        attention_call(tracer, args[1], args[2], 8 + ATTENTION_BACKWARD[name])
    elif name == "aten::_cudnn_rnn":
        recurrent(tracer, args[0], args[1], args[6], args[7], args[9], args[13])
    elif name == "aten::_cudnn_rnn_backward":  # of the input, then of the weights
        for _ in range(2):
            recurrent(tracer, args[0], args[1], args[10], args[11], args[13], args[17])
    elif name in MATMULS:
        a, b = [value for value in args if isinstance(value, tracer.torch.Tensor)][-2:]
        if a.dim() >= 2 and b.dim() >= 2:
            batch = a.shape[0] if a.dim() == 3 else 1
            tf32 = int(tracer.torch.backends.cuda.matmul.allow_tf32)
            with_bias = name == "aten::addmm" and args[0].dim() == 1
            tracer.file.call(tracer.file.site("matmul_bias" if with_bias else "matmul", "", tracer.source(), tracer.phase),
                             [a.element_size() * 8, tf32, batch, a.shape[-2], b.shape[-1], a.shape[-1]])


ATTENTION_BACKWARD = {"aten::_scaled_dot_product_flash_attention_backward": 0, "aten::_scaled_dot_product_efficient_attention_backward": 1,
                      "aten::_scaled_dot_product_cudnn_attention_backward": 2}


# dtype bits, mode (0 relu, 1 tanh, 2 LSTM, 3 GRU), layers, directions, hidden size, elements of the input, sequence length,
# batch, bytes of the weights.
def recurrent(tracer, x, weights, mode, hidden, layers, both):
    place = tracer.file.site("rnn", tracer.modules[-1] if tracer.modules else "", tracer.source(), tracer.phase)
    tracer.file.call(place, [x.element_size() * 8, mode, layers, 2 if both else 1, hidden, x.numel(), x.shape[0], x.shape[1],
                             sum(w.numel() * w.element_size() for w in weights)])


MATMULS = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_addmm_activation", "aten::addmv", "aten::mv"}


def conv(tracer, site, kind, x, w, y, stride, padding, dilation, transposed, groups):
    spatial = x.dim() - 2
    each = lambda value: [int(v) for v in (list(value) * spatial if len(value) == 1 else value)]
    last = int(x.is_contiguous(memory_format=tracer.torch.channels_last) and not x.is_contiguous()) if spatial == 2 else 0
    name = ("conv", "conv_dgrad", "conv_wgrad")[kind]
    place = tracer.file.site(name, tracer.modules[-1] if tracer.modules else "", tracer.source(), tracer.phase)
    tracer.file.call(place, [x.element_size() * 8, x.shape[0], x.shape[1], y.shape[1], groups, int(transposed), last, spatial]
                     + [int(v) for v in x.shape[2:]] + [int(v) for v in y.shape[2:]] + [int(v) for v in w.shape[2:]]
                     + each(stride) + each(padding) + each(dilation))


# ---- torch.cuda without a GPU -----------------------------------------------------------------------------------------------

def pretend_cuda(tracer):
    torch = tracer.torch
    cuda = torch.cuda
    nothing = lambda *args, **kwargs: None

    class Properties:
        name = tracer.gpu_name
        major, minor = tracer.capability
        total_memory = tracer.total
        multi_processor_count = 132
        warp_size = 32
        max_threads_per_multi_processor = 2048
        regs_per_multiprocessor = 65536
        shared_memory_per_block_optin = 232448
        shared_memory_per_multiprocessor = 233472
        L2_cache_size = 62914560
        is_integrated = is_multi_gpu_board = 0
        uuid = "GPU-00000000-0000-0000-0000-000000000000"
        gcnArchName = ""

    class Stream:
        def __init__(self, *args, **kwargs):
            self.device = torch.device("cuda", 0)
            self.stream_id = self.cuda_stream = self.device_index = 0
            self.device_type = 1

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return lambda *args, **kwargs: True if name == "query" else None

        def __enter__(self):
            return self

        def __exit__(self, *args):
            return None

    class Event(Stream):
        def __init__(self, *args, **kwargs):
            pass

        def elapsed_time(self, other):
            return 1.0

    stream = Stream()

    class OneStream:
        def __init__(self, *args):
            pass

        def __enter__(self):
            return stream

        def __exit__(self, *args):
            return None

    # What a program takes out of a tensor without values: zeros of its shape, and a note.
    def values(tensor):
        value = tracer.shadows.get(tensor)
        if value is None:
            tracer.file.note("data_dependent", "values of a %s tensor read; zeros were given" % str(tensor.dtype)[6:], tracer.source())
            value = torch.zeros(tuple(tensor.shape), dtype=tensor.dtype)
        return value

    for name in ("numpy", "tolist", "__array__"):
        def reader(self, *args, _real=getattr(torch.Tensor, name), **kwargs):
            return _real(values(self) if isinstance(self, tracer.FakeTensor) else self, *args, **kwargs)
        setattr(torch.Tensor, name, reader)

    real_load = torch.load

    def load(file, map_location=None, *args, **kwargs):
        if map_location is not None and "cuda" in str(map_location) or map_location is None:
            map_location = "cpu"
        return real_load(file, map_location, *args, **kwargs)

    torch.load = load
    if hasattr(torch, "accelerator"):
        for name, value in {"is_available": lambda: True, "device_count": lambda: 1, "current_accelerator": lambda *a, **k: torch.device("cuda"),
                            "current_device_index": lambda: 0, "current_device_idx": lambda: 0, "set_device_index": nothing,
                            "set_device_idx": nothing, "synchronize": nothing, "empty_cache": nothing, "memory_allocated": lambda *a, **k: tracer.allocated,
                            "max_memory_allocated": lambda *a, **k: tracer.peak, "reset_peak_memory_stats": nothing,
                            "memory_reserved": lambda *a, **k: tracer.allocated, "max_memory_reserved": lambda *a, **k: tracer.peak}.items():
            if hasattr(torch.accelerator, name):
                setattr(torch.accelerator, name, value)
    for name in ("_record_memory_history", "_dump_snapshot", "_set_allocator_settings"):
        if hasattr(cuda.memory, name):
            setattr(cuda.memory, name, nothing)
    state = lambda *args, **kwargs: torch.zeros(16, dtype=torch.uint8)
    stats = lambda *args, **kwargs: __import__("collections").OrderedDict()
    for name, value in {
        "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0, "is_initialized": lambda: True,
        "_lazy_init": nothing, "init": nothing, "set_device": nothing, "synchronize": nothing, "ipc_collect": nothing,
        "get_device_name": lambda *a, **k: tracer.gpu_name, "get_device_capability": lambda *a, **k: tracer.capability,
        "get_device_properties": lambda *a, **k: Properties(), "get_arch_list": lambda: ["sm_%d%d" % tracer.capability],
        "is_bf16_supported": lambda *a, **k: tracer.capability >= (8, 0), "is_tf32_supported": lambda: tracer.capability >= (8, 0),
        "mem_get_info": lambda *a, **k: (tracer.total - tracer.allocated, tracer.total),
        "memory_allocated": lambda *a, **k: tracer.allocated, "max_memory_allocated": lambda *a, **k: tracer.peak,
        "memory_reserved": lambda *a, **k: tracer.allocated, "max_memory_reserved": lambda *a, **k: tracer.peak,
        "memory_cached": lambda *a, **k: tracer.allocated, "memory_stats": stats, "memory_summary": lambda *a, **k: "",
        "empty_cache": nothing, "reset_peak_memory_stats": nothing, "reset_max_memory_allocated": nothing,
        "set_per_process_memory_fraction": nothing, "utilization": lambda *a, **k: 0,
        "manual_seed": nothing, "manual_seed_all": nothing, "seed": nothing, "seed_all": nothing, "initial_seed": lambda: 0,
        "get_rng_state": state, "set_rng_state": nothing, "get_rng_state_all": lambda: [state()], "set_rng_state_all": nothing,
        "Stream": Stream, "Event": Event, "current_stream": lambda *a, **k: stream, "default_stream": lambda *a, **k: stream,
        "stream": OneStream, "set_stream": nothing, "can_device_access_peer": lambda *a: False, "current_blas_handle": lambda: 0,
    }.items():
        for module in (cuda, cuda.memory if hasattr(cuda.memory, name) else cuda, cuda.random if hasattr(cuda.random, name) else cuda):
            setattr(module, name, value)
    cuda.is_current_stream_capturing = cuda.graphs.is_current_stream_capturing = lambda: False
    torch._C._cuda_getDeviceCount = lambda: 1
    torch._C._cuda_isInBadFork = lambda: False
    torch._C._cuda_getDevice = lambda: 0
    torch._C._cuda_setDevice = nothing
    torch._C._cuda_exchangeDevice = lambda *a: 0
    torch._C._cuda_maybeExchangeDevice = lambda *a: 0
    torch.Tensor.pin_memory = lambda self, *a, **k: self
    torch.Tensor.record_stream = nothing
    try:
        import torch.cuda.amp.common as common
        common.amp_definitely_not_available = lambda: False
    except ImportError:
        pass
    cudnn = torch.backends.cudnn
    try:
        cudnn.version()
    except Exception:
        cudnn.version = lambda: 91900

    def compiled(model=None, *args, **kwargs):
        tracer.file.note("assumed", "torch.compile is not followed; the model was traced as it runs without", tracer.source())
        return model if model is not None else (lambda function: function)

    torch.compile = compiled
    torch.nn.Module.compile = lambda self, *a, **k: compiled(self)


# ---- modules, optimizers, loaders -------------------------------------------------------------------------------------------

def patch_modules(tracer):
    torch = tracer.torch
    Module = torch.nn.Module
    Parameter = torch.nn.Parameter
    real_new = Parameter.__new__

    # Every parameter is fake from the start: optimizers keep hold of it, and it cannot become fake later.
    def new(cls, data=None, requires_grad=True):
        if isinstance(data, torch.Tensor) and not isinstance(data, tracer.FakeTensor) and data.device.type == "cpu" and type(data) is torch.Tensor:
            value = data.detach()
            with tracer.fake:
                data = tracer.fake.from_tensor(value)
            if value.numel() <= 4096:
                tracer.shadows[data] = value
        return real_new(cls, data, requires_grad)

    Parameter.__new__ = new

    # As Module._apply does where it may set `data`, but for the device, which a fake tensor keeps beside.
    def apply(self, fn, recurse=True):
        if recurse:
            for child in self.children():
                child._apply(fn)
        for key, parameter in self._parameters.items():
            if parameter is None:
                continue
            for holder in (parameter, parameter.grad):
                if holder is None:
                    continue
                with torch.no_grad():
                    value = fn(holder)
                if value is holder:
                    continue
                if isinstance(holder, tracer.FakeTensor):
                    holder.data = value
                    holder.fake_device = value.fake_device
                elif holder is parameter:
                    self._parameters[key] = Parameter(value, parameter.requires_grad)
        for key, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[key] = fn(buffer)
        return self

    Module._apply = apply

    # cuDNN wants the weights of a layer side by side.
    def flatten(self):
        weights = [w for w in self._flat_weights if isinstance(w, tracer.FakeTensor) and w.device.type == "cuda"]
        if not weights or len(weights) != len(self._flat_weights) or len({w.untyped_storage()._cdata for w in weights}) == 1:
            return
        with torch.no_grad():
            whole = torch.empty(sum(w.numel() for w in weights), dtype=weights[0].dtype, device="cuda")
            at = 0
            for w in weights:
                w.data = whole[at:at + w.numel()].view(w.shape)
                at += w.numel()

    torch.nn.RNNBase.flatten_parameters = flatten
    for name in dir(torch.nn.init):
        function = getattr(torch.nn.init, name)
        if name.endswith("_") and not name.startswith("_") and callable(function):
            def skip(tensor, *args, _function=function, **kwargs):
                return tensor if isinstance(tensor, tracer.FakeTensor) else _function(tensor, *args, **kwargs)
            setattr(torch.nn.init, name, skip)

    def tell_parameters(module):
        if id(module) in tracer.known:
            return
        for name, child in module.named_modules():
            tracer.module_names.setdefault(id(child), name or type(child).__name__)
            tracer.known[id(child)] = child
        for parameter in module.parameters():
            tracer.categorise(parameter.data, PARAMETER)
        for buffer in module.buffers():
            tracer.categorise(buffer, BUFFER)

    def before(module, args):
        if not tracer.modules:
            if id(module) not in tracer.known:
                tell_parameters(module)
        if torch.is_grad_enabled():
            tracer.step_begins()
        tracer.modules.append(tracer.module_names.get(id(module), type(module).__name__))

    def after(module, args, out):
        if tracer.modules:
            tracer.modules.pop()

    from torch.nn.modules import module as hooks
    hooks.register_module_forward_pre_hook(before)
    hooks.register_module_forward_hook(after, always_call=True)


def patch_optimizers(tracer):
    torch = tracer.torch
    import torch.optim.optimizer as optimizer

    optimizer._foreach_supported_types.append(tracer.FakeTensor)
    optimizer._get_foreach_kernels_supported_devices = lambda: ["cuda"]
    real_backward = torch.autograd.backward

    def backward(*args, **kwargs):
        before, tracer.phase = tracer.phase, BACKWARD
        try:
            return real_backward(*args, **kwargs)
        finally:
            tracer.phase = before

    torch.autograd.backward = backward

    def step_before(self, args, kwargs):
        for group in self.param_groups:
            for parameter in group["params"]:
                tracer.categorise(parameter.data, PARAMETER)
                if parameter.grad is not None:
                    tracer.categorise(parameter.grad, GRADIENT)
        tracer.phase = OPTIMIZER

    def step_after(self, args, kwargs):
        for state in self.state.values():
            for value in state.values() if isinstance(state, dict) else ():
                if isinstance(value, torch.Tensor):
                    tracer.categorise(value, OPTIMIZER_STATE)
        tracer.phase = FORWARD
        tracer.optimizer_steps(id(self))

    real_init = optimizer.Optimizer.__init__

    def init(self, *args, **kwargs):
        tracer.optimizers += 1
        real_init(self, *args, **kwargs)

    optimizer.Optimizer.__init__ = init
    optimizer.register_optimizer_step_pre_hook(step_before)
    optimizer.register_optimizer_step_post_hook(step_after)
    # Whether gradients overflow is not known without values: they do not.
    for scaler in {torch.amp.GradScaler}:
        scaler._maybe_opt_step = lambda self, optimizer, state, *args, **kwargs: optimizer.step(*args, **kwargs)


def patch_loaders(tracer):
    data = tracer.torch.utils.data
    real = data.DataLoader.__init__
    real_sampler = data.BatchSampler.__init__
    inside = []

    class Repeated(data.Dataset):
        """A data set over and over: enough for the steps at a greater batch size."""

        def __init__(self, dataset, length):
            self._dataset, self._length = dataset, length

        def __len__(self):
            return self._length

        def __getitem__(self, index):
            return self._dataset[index % len(self._dataset)]

        def __getattr__(self, name):
            if name in ("_dataset", "__getitems__"):
                raise AttributeError(name)
            return getattr(self._dataset, name)

    def told(batch_size, what):
        if tracer.loaders == 0:
            tracer.file.fact("batch_found", batch_size)
            tracer.file.fact("batch_from", "%s %s" % (what, tracer.source()))
            if not tracer.wanted["BATCH"]:
                tracer.file.fact("batch", batch_size)
        tracer.loaders += 1
        return tracer.wanted["BATCH"] or batch_size

    def init(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, *args, **kwargs):
        if batch_sampler is None and batch_size is not None:
            batch_size = told(batch_size, "DataLoader")
            if sampler is None and not isinstance(dataset, data.IterableDataset) and hasattr(dataset, "__len__"):
                enough = batch_size * (tracer.wanted["STEPS"] + 1) * 16
                if 0 < len(dataset) < enough:
                    dataset = Repeated(dataset, (enough // len(dataset) + 1) * len(dataset))
        for key in ("pin_memory", "persistent_workers"):
            if kwargs.get(key):
                kwargs[key] = False
        for key in ("prefetch_factor", "multiprocessing_context", "timeout"):
            kwargs.pop(key, None)
        inside.append(1)
        try:
            real(self, dataset, batch_size, shuffle, sampler, batch_sampler, 0, *args, **kwargs)
        finally:
            inside.pop()

    def sampler_init(self, sampler, batch_size, drop_last, *args, **kwargs):
        if not inside and isinstance(batch_size, int):
            batch_size = told(batch_size, "BatchSampler")
        real_sampler(self, sampler, batch_size, drop_last, *args, **kwargs)

    data.DataLoader.__init__ = init
    data.BatchSampler.__init__ = sampler_init


def patch_saving(tracer):
    torch = tracer.torch

    def save(obj, target, *args, **kwargs):
        tracer.file.note("scratch", "torch.save(%s) was not done" % (target if isinstance(target, str) else type(target).__name__), tracer.source())

    torch.save = save


# Scaled dot product attention picks its kernel by the GPU, which is not there. The choice below is what torch 2.11 with cuDNN
# 9.19 made on an H100 in 480 combinations of type, head size, mask and grouping: cuDNN's on compute capability 9.0 and 10.0,
# else flash, which takes no mask, else the memory-efficient one, which takes no grouped heads, else the plain products.
def patch_attention(tracer):
    torch = tracer.torch
    functional = torch.nn.functional
    real = functional.scaled_dot_product_attention
    aten = torch.ops.aten
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])

    def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if query.device.type != "cuda":
            return real(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        if torch.is_autocast_enabled("cuda"):
            dtype = torch.get_autocast_dtype("cuda")
            with torch.autocast("cuda", enabled=False):
                query, key, value, attn_mask = (
                    t.to(dtype) if t is not None and t.dtype.is_floating_point and t.dtype != torch.float64 else t
                    for t in (query, key, value, attn_mask))
                return attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
        backends = torch.backends.cuda
        half = query.dtype in (torch.float16, torch.bfloat16)
        four = query.dim() == key.dim() == value.dim() == 4
        size = max(query.shape[-1], value.shape[-1])
        # What each fused kernel asks for.
        rows = all(t is None or t.stride(-1) == 1 or t.shape[-1] == 1 for t in (query, key, value, attn_mask))
        rows = rows and four and query.shape[0] == key.shape[0] and key.shape[:2] == value.shape[:2]
        rows = rows and (enable_gqa or query.shape[1] == key.shape[1])
        grouped = enable_gqa and four and key.shape[1] != query.shape[1]
        grad = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)

        def bias():
            if attn_mask is None or attn_mask.dtype != torch.bool:
                return attn_mask
            zero = torch.scalar_tensor(0.0, dtype=query.dtype, device="cuda")
            least = torch.scalar_tensor(float("-inf"), dtype=query.dtype, device="cuda")
            return torch.where(attn_mask, zero, least)

        def padded(tensor):
            rest = tensor.shape[-1] % 8
            return torch.nn.functional.pad(tensor, (0, 8 - rest)) if rest else tensor

        cudnn = getattr(backends, "cudnn_sdp_enabled", lambda: False)() and tracer.capability in ((9, 0), (10, 0)) and version >= (2, 10)
        learned = attn_mask is not None and attn_mask.requires_grad and torch.is_grad_enabled()  # cuDNN's does not give its gradient
        if cudnn and rows and not learned and half and four and size <= 256 and size % 8 == 0 and query.shape[2] > 1:
            mask = bias()
            if mask is not None:
                mask = mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
            out = aten._scaled_dot_product_cudnn_attention(query, key, value, mask, grad, dropout_p, is_causal, False, scale=scale)
            attention_call(tracer, query, key, 2)
            return out[0]
        if backends.flash_sdp_enabled() and rows and half and four and attn_mask is None and tracer.capability >= (8, 0) and size <= 256:
            q, k, v = padded(query), padded(key), padded(value)
            scale = scale if scale is not None else query.shape[-1] ** -0.5
            attention_call(tracer, query, key, 0)
            return aten._scaled_dot_product_flash_attention(q, k, v, dropout_p, is_causal, scale=scale)[0][..., :value.shape[-1]]
        if backends.mem_efficient_sdp_enabled() and rows and four and not grouped:
            mask = bias()
            if mask is not None:
                if mask.shape[-1] % (8 if half else 4):
                    mask = torch.nn.functional.pad(mask, (0, 8 - mask.shape[-1] % 8))[..., :attn_mask.shape[-1]]
                mask = mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
            attention_call(tracer, query, key, 1)
            return aten._scaled_dot_product_efficient_attention(query, key, value, mask, grad, dropout_p, is_causal, scale=scale)[0]
        more = {"enable_gqa": True} if enable_gqa else {}
        return aten._scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **more)[0]

    functional.scaled_dot_product_attention = attention
    torch._C._nn.scaled_dot_product_attention = attention


# Recurrent layers: cuDNN's operator by hand, since the way there asks the driver.
def patch_recurrent(tracer):
    torch = tracer.torch
    aten = torch.ops.aten
    from torch import _VF

    def of(name, mode):
        real = getattr(_VF, name)

        def run(*args):
            tensors = args[0]
            if tensors.device.type != "cuda":
                return real(*args)
            packed = isinstance(args[1], torch.Tensor) and not isinstance(args[2], bool) and args[1].dtype == torch.int64
            if packed:
                data, sizes, hidden, weights, bias, layers, dropout, train, both = args
                first, sizes = False, sizes.tolist()
            else:
                data, hidden, weights, bias, layers, dropout, train, both, first = args
                sizes = []
            hx, cx = hidden if mode == 2 else (hidden, None)
            if torch.is_autocast_enabled("cuda"):
                dtype = torch.get_autocast_dtype("cuda")
                data, hx, cx = (t if t is None else t.to(dtype) for t in (data, hx, cx))
                flat = torch.cat([w.to(dtype).reshape(-1) for w in weights])
                sized, at = [], 0
                for w in weights:
                    sized.append(flat[at:at + w.numel()].view(w.shape))
                    at += w.numel()
                weights = sized
            size = hx.shape[-1]
            hidden_size = weights[0].shape[0] // {2: 4, 3: 3}.get(mode, 1)
            state = None
            if dropout > 0 and train:
                if tracer.dropout_state is None:  # kept for ever; its size on a GPU of 132 multiprocessors
                    tracer.dropout_state = torch.empty(6488064, dtype=torch.uint8, device="cuda")
                state = tracer.dropout_state
            with torch.no_grad():
                total = sum(w.numel() for w in weights)
                whole = torch.as_strided(weights[0].detach(), (total,), (1,), 0) if len({w.untyped_storage()._cdata for w in weights}) == 1 \
                    else torch.empty(total, dtype=data.dtype, device="cuda")
            with torch.autocast("cuda", enabled=False):
                turned = data.transpose(0, 1) if first and not packed else data  # cuDNN has the sequence first
                out = aten._cudnn_rnn(turned, weights, 4 if bias else 2, whole, hx, cx, mode, hidden_size, size if size != hidden_size else 0,
                                      layers, False, dropout if train else 0.0, train, both, sizes, state)
            result = out[0].transpose(0, 1) if first and not packed else out[0]
            return (result,) + tuple(out[1:3] if mode == 2 else out[1:2])

        setattr(_VF, name, run)

    for name, mode in (("rnn_relu", 0), ("rnn_tanh", 1), ("lstm", 2), ("gru", 3)):
        of(name, mode)


# kind: 0 flash, 1 memory-efficient, 2 cuDNN, 3 plain; 8 more in backward.
def attention_call(tracer, query, key, kind):
    site = tracer.file.site("sdpa", tracer.modules[-1] if tracer.modules else "", tracer.source(), tracer.phase)
    tracer.file.call(site, [kind, query.element_size() * 8, *query.shape[:3], key.shape[2], query.shape[3], key.shape[1]])


# ---- start ------------------------------------------------------------------------------------------------------------------

def start():
    wanted = settings()
    if not wanted["OUT"]:
        return
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]
    tracers = []

    def imported(torch):
        if tracers:
            return
        tracer = Tracer(torch, wanted)
        tracers.append(tracer)
        try:
            tracer.install()
        except Exception as error:
            if os.path.exists(wanted["OUT"]):
                os._exit(3)
            tracer.file.fact("torch", torch.__version__)
            tracer.file.note("error", "the tracer does not work with torch %s: %s: %s" % (torch.__version__, type(error).__name__, error), "")
            tracer.file.end(FAILED)
            sys.stderr.write("cufit: the tracer does not work with torch %s: %s: %s\n" % (torch.__version__, type(error).__name__, error))
            sys.stderr.flush()
            os._exit(3)
        failed = sys.excepthook

        def hook(kind, error, trace):
            last = trace
            place = ""
            while last is not None:
                path = os.path.abspath(last.tb_frame.f_code.co_filename)
                if not any(path.startswith(prefix + os.sep) for prefix in tracer.prefixes):
                    place = "%s:%d" % (os.path.relpath(path), last.tb_lineno)
                last = last.tb_next
            tracer.file.note("error", "%s: %s" % (kind.__name__, error), place)
            tracer.file.end(FAILED)
            failed(kind, error, trace)

        sys.excepthook = hook
        import atexit
        atexit.register(lambda: tracer.file.end(ENDED))

    import importlib.abc
    import importlib.machinery
    import importlib.util

    class Loader(importlib.abc.Loader):
        def __init__(self, real):
            self.real = real

        def create_module(self, spec):
            return self.real.create_module(spec)

        def exec_module(self, module):
            module.__loader__ = self.real
            module.__spec__.loader = self.real
            self.real.exec_module(module)
            imported(module)

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name != "torch":
                return None
            sys.meta_path.remove(self)
            spec = importlib.util.find_spec(name)
            if spec is not None and spec.loader is not None:
                spec.loader = Loader(spec.loader)
            return spec

    shim = os.path.join(here, "no_accelerator.so")
    if os.path.exists(shim):
        import ctypes

        ctypes.CDLL(shim, mode=ctypes.RTLD_GLOBAL)
    sys.meta_path.insert(0, Finder())
    sys._cufit_tracers = tracers


# `make_step(batch)` of the user's module gives a callable that does one training step.
def run_function():
    wanted = settings()
    name, _, function = wanted["FUNCTION"].partition(":")
    sys.path.insert(0, os.getcwd())
    import torch  # noqa: F401  the tracer is put in place with it
    import importlib

    tracer = sys._cufit_tracers[0]
    tracer.by_function = True
    tracer.file.fact("batch_from", "function")
    step = getattr(importlib.import_module(name), function)(wanted["BATCH"])
    for _ in range(wanted["STEPS"]):
        tracer.step_begins()
        step()
        tracer.step_ends()


if __name__ == "__main__":
    run_function()
else:
    start()
