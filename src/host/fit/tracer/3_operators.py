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
    alike = {aten.zeros_like.default, aten.ones_like.default, aten.full_like.default}  # whose values need none
    verdicts = {aten.isnan.default: 0, aten.isinf.default: 0, aten.isfinite.default: 1}
    itself = {aten.eq.Tensor: True, aten.ne.Tensor: False}
    joining = {aten.cat.default, aten.stack.default, aten.full.default, aten.new_full.default, aten.new_zeros.default}
    own = unfaked(tracer)
    blocks = Blocks(tracer)
    layouts = Layouts(tracer, fake, blocks)
    # When the fake kernel does not do.
    sparse = lambda tensors: any(t.layout is not torch.strided for t in tensors)
    when = {aten.mm.default: sparse, aten.addmm.default: sparse}
    if hasattr(aten, "_grouped_mm"):
        when[aten._grouped_mm.default] = lambda tensors: tensors[0].dtype != torch.bfloat16

    import operator
    compares = {getattr(aten, name).Scalar: getattr(operator, name) for name in ("lt", "le", "gt", "ge")}

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

    # What is true or something is true, what is false and something is false.
    settling = {getattr(aten, name).Tensor if name.startswith("bitwise") else getattr(aten, name).default: name.endswith("or")
                for name in ("bitwise_or", "bitwise_and", "logical_or", "logical_and")}

    def settled(func, args, out):
        settles = settling[func]
        for operand in args[:2]:
            value = shadow_of(operand) if isinstance(operand, torch.Tensor) else None
            if value is not None and value.numel() and (value.dtype == torch.bool or not settles) and bool((value != 0).all() if settles else (value == 0).all()):
                return torch.full(tuple(out.shape), settles, dtype=out.dtype)
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
        if hint is not None and getattr(tensor, "_cufit_compared", False):
            # A loop that waits for it would wait for ever.
            place = tracer.source()
            tracer.compared[place] = tracer.compared.get(place, 0) + 1
            hint = hint if tracer.compared[place] <= tracer.MOST_COMPARED else not hint
            tracer.file.note("data_dependent", "%s value read; %s was given" % (str(tensor.dtype)[6:], hint), place)
        if hint is not None:
            return hint
        if tracer.valid and tensor.dtype == torch.bool:
            return True
        stand_in = False if tensor.dtype == torch.bool else 1.0 if tensor.dtype.is_floating_point else 1
        tracer.file.note("data_dependent", "%s value read; %s was given" % (str(tensor.dtype)[6:], stand_in), tracer.source())
        return stand_in

    # How many of a mask without values hold: all; of those that ask which elements equal a number, the first that asks, so that
    # the parts of a whole are together no more than the whole.
    def none_holds(mask):
        of, number = getattr(mask, "_cufit_equals", (None, None))
        whole = of() if of is not None else None
        if whole is None:
            return False
        first = getattr(whole, "_cufit_first", None)
        if first is None:
            first = whole._cufit_first = number
        return first != number

    def tell_kept(func):
        tracer.file.note("assumed", "how many elements %s keeps depends on values: all were kept" % func._schema.name.split("::")[1], tracer.source())

    def places(func, mask):
        value = shadow_of(mask)
        if value is not None:
            return torch.nonzero(value)
        tell_kept(func)
        if none_holds(mask):
            return torch.zeros((0, mask.dim()), dtype=torch.int64)
        if mask.numel() <= tracer.SHADOW_ELEMENTS:
            return torch.nonzero(torch.ones(mask.shape, dtype=torch.bool))
        with fake:
            return torch.empty((mask.numel(), mask.dim()), dtype=torch.int64, device="cuda")

    # What an operator returns whose number of results nothing but values tells: the result, or values for it. None: not known.
    def with_all(func, args, kwargs):
        if func is aten.nonzero.default:
            return places(func, args[0])
        if func._schema.name == "torchvision::nms":
            tell_kept(func)
            return torch.arange(args[0].shape[0])
        if func is aten.masked_select.default:
            whole = torch.broadcast_shapes(args[0].shape, args[1].shape).numel()
            count = len(places(func, args[1])) * whole // max(args[1].numel(), 1)
            with fake:
                return torch.empty(count, dtype=args[0].dtype, device="cuda")
        if func._schema.name in UNIQUE:
            tell_kept(func)
            with fake:
                return all_distinct(torch, func._schema.name, *args, **kwargs)
        if func is aten.index.Tensor:
            indices = []
            for index in args[1]:
                mask = index is not None and index.dtype in (torch.bool, torch.uint8)
                indices += places(func, index).unbind(1) if mask else [index]
            with fake:
                return func(args[0], [fake.from_tensor(index).to("cuda") if type(index) is torch.Tensor else index for index in indices])
        return None

    # Weights that are in no single piece are copied into one, which is kept for backward.
    def with_weights(args, out):
        if args[3] is not None:
            return out
        with fake:
            return out[:4] + (torch.empty(sum(w.numel() for w in args[1]), dtype=args[0].dtype, device="cuda"),)

    # What cuDNN keeps of a recurrent layer for its backward, of which the fake kernel knows nothing: so many values per element
    # of the output, and between layers a bit per element and direction where it drops out, rounded up to 32 bytes. Equal to what
    # torch 2.11 with cuDNN 9.19 kept on an H100 for 42 LSTM and GRU layers of seven shapes, to the byte.
    def with_reserve(args, out):
        x, mode, hidden, layers, dropout, both = args[0], args[6], args[7], args[9], args[11], args[13]
        each = {2: 5, 3: 6}.get(mode, 1) * layers + layers - 1
        elements = x.numel() // x.shape[-1] * hidden * (2 if both else 1)
        size = each * elements * x.element_size() + 256
        if dropout > 0:
            size += (layers - 1) * (2 if both else 1) * ((elements // 8 + 31) // 32 * 32)
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

    # First the gradients of the input and the states, then those of the weights; for each the operands in one piece.
    def tell_recurrent_backward(args, out, site):
        copied_bytes = [0 if t is None or t.is_contiguous() else t.numel() * t.element_size() for t in (args[0], args[7])]
        for results, sizes in ((out[:3], copied_bytes), (out[3], copied_bytes[:1])):
            copies = [tracer.file.alloc(size, site) for size in sizes if size]
            recurrent(tracer, args[0], args[1], args[10], args[11], args[13], args[17], args[18], args[15] > 0 and args[16], True)
            tracer.tell(results, site)
            for storage in copies:
                tracer.file.free(storage)

    import threading
    one_by_one = threading.RLock()  # of the program's threads

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
                        with one_by_one, fake:
                            return func(*args, **dict(kwargs, pin_memory=False) if kwargs.get("pin_memory") else kwargs)
                tracer.draws.real(func)
                return real_call(func, args, kwargs)
            with one_by_one:
                return self.run(func, args, kwargs, tensors, device, any_fake)

        def run(self, func, args, kwargs, tensors, device, any_fake):
            if func is aten._local_scalar_dense.default:
                return value_of(func, args[0])
            if tensors and tracer.draws.seeded in func.tags:
                tracer.draws.skipped(func, tensors[0], generator=kwargs.get("generator"))
            if func in own and (func not in when or when[func](tensors)):
                with self, torch.no_grad():
                    return own[func](*args, **kwargs)
            if func is aten._to_copy.default and args[0].layout is torch.sparse_coo and not any_fake:
                with self, torch.no_grad():
                    return sparse_on_gpu(torch, args[0], kwargs.get("dtype"))
            if func is aten.is_pinned.default:
                return False
            if func is aten._pin_memory.default:
                return args[0]
            if func is aten.add.Tensor and tracer.sums.in_place(args, kwargs):
                forget(aten.add_.Tensor, args, kwargs)
                if tracer.counting:
                    tell_work(tracer, func, args, kwargs, tensors, args[0])
                return args[0]
            bias = func is aten.add.Tensor and tracer.adds_bias and len(args) == 2 and isinstance(args[0], FakeTensor) and args[1].dim() == 1
            if bias or tracer.formulas.in_place(func, args):
                forget(aten.add_.Tensor, args, kwargs)
                if tracer.counting:
                    tell_work(tracer, func, args, kwargs, tensors, args[0])
                blocks.tell(blocks.after(func, args, kwargs, args[0]))
                with fake:
                    return aten.alias.default(args[0])
            values = None
            written = func._schema.is_mutable
            if all(t.numel() <= tracer.SHADOW_FLOATS or not t.dtype.is_floating_point for t in tensors):
                dtype = kwargs.get("dtype")
                drawn = torch.Tag.nondeterministic_seeded in func.tags
                whole = func is aten.randperm.default or dtype is not None and not dtype.is_floating_point
                if tensors or func not in empties and (not drawn or whole):
                    values = shadow_call(func, args, kwargs, tensors)
            if written and values is None:
                forget(func, args, kwargs)
            if written and tracer.by_hand is False:
                tracer.written(args[0][0] if isinstance(args[0], (list, tuple)) and args[0] else args[0])
            if func is aten._to_copy.default and not any_fake:  # else torch before 2.5 copies it first
                args = (fake.from_tensor(args[0]),) + args[1:]
            try:
                with fake:
                    out = (recurrent_backward if func is aten._cudnn_rnn_backward.default else func)(*args, **kwargs)
            except (tracer.DynamicShape, tracer.DataDependent):
                if values is None:
                    values = shadow_call(func, args, kwargs, tensors)
                out = with_all(func, args, kwargs) if values is None else None
                if out is None and values is None:
                    tracer.file.note("data_dependent", "the shape of what %s returns depends on values" % func, tracer.source())
                    raise
                if out is not None:
                    values = None if isinstance(out, FakeTensor) else out
                with fake:
                    out = out if values is None else pytree.tree_map_only(torch.Tensor, lambda t: torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="cuda"), values)
            except tracer.Unsupported:
                # The optimizers' kernels of older torch: they write where they are told to and take nothing more.
                if not func._schema.name.startswith("aten::_fused_") or func._schema.returns:
                    tracer.file.note("no_fake_kernel", str(func), tracer.source())
                    raise
                out = None
            out = layouts.as_gpu_does(func, args, out)
            if func is aten._cudnn_rnn.default:
                out = with_weights(args, out)
                if kwargs.get("train", args[12] if len(args) > 12 else True):
                    out = with_reserve(args, out)
            out = blocks.as_made(func, args, kwargs, out)
            if values is None and func in alike and isinstance(out, FakeTensor) and not out.dtype.is_floating_point and out.numel() <= tracer.SHADOW_ELEMENTS:
                values = func(torch.empty(args[0].shape, dtype=args[0].dtype), *args[1:], **without_device(kwargs))
            if func is aten.eq.Scalar and values is None and isinstance(out, FakeTensor):
                out._cufit_equals = weakref.ref(args[0]), args[1]
            if values is None and func in settling and isinstance(out, FakeTensor) and out.numel() <= tracer.SHADOW_ELEMENTS:
                values = settled(func, args, out)
            if values is not None:
                pair(out, values)
            elif func in verdicts and isinstance(out, FakeTensor):
                out._cufit_verdict = bool(verdicts[func])
            elif func in itself and isinstance(out, FakeTensor) and args[0] is args[1]:  # is it a number
                out._cufit_verdict = itself[func]
            elif func in compares and isinstance(out, FakeTensor) and out.numel() == 1 and getattr(args[0], "_cufit_verdict", None) is None:
                # What is given where the value is read.
                out._cufit_verdict, out._cufit_compared = compares[func](1, args[1]), True
            elif tensors and isinstance(out, FakeTensor) and out.dtype == torch.bool and out.numel() == 1:
                hint = getattr(tensors[0], "_cufit_verdict", None)
                if hint is not None:
                    out._cufit_verdict = (not hint) if func is aten.logical_not.default else hint
            tracer.formulas.saw(func, out)
            name = func.__name__ if hasattr(func, "__name__") else str(func)
            site = tracer.file.site(name.split(".")[0], tracer.modules[-1] if tracer.modules else "", tracer.source(), tracer.phase)
            if func is aten._cudnn_rnn_backward.default:
                tell_recurrent_backward(args, out, site)
                return out
            copies = [tracer.file.alloc(size, site) for size in blocks.before(func, args, out)]
            if not blocks.convolve(func, args, out, site):
                tell_call(tracer, func, args, kwargs, out, site)
            if tracer.counting:
                tell_work(tracer, func, args, kwargs, tensors, out)
            # The mask is made first; the gradient of weights of one channel per group, which PyTorch's own kernels make.
            if func is aten.native_dropout.default or func is aten.convolution_backward.default and blocks.own_kernel(func, args):
                tracer.tell(out[1], site)
            if func is aten._cudnn_rnn.default:
                tracer.tell(out[4], site)
            if tracer.after.began and func in joining and isinstance(out, FakeTensor):
                tracer.after.joins.add(tracer.file.storages)
            tracer.tell(out, site)
            blocks.sum_of_norm(func, args, out, site)
            blocks.tell(blocks.after(func, args, kwargs, out))
            for storage in copies:
                tracer.file.free(storage)
            if device is not None and tensors and not isinstance(tensors[0], FakeTensor):
                tracer.categorise(out, INPUT)
            # Normalised, mixed or turned into floats on the GPU, and before any weight meets it, it still is the batch.
            elif not tracer.modules and tensors and tracer.is_input(tensors[0]) and not any(tensor.requires_grad for tensor in tensors):
                tracer.categorise(out, INPUT)
            return out

    return Mode()


