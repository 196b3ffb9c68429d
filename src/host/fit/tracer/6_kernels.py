# Scaled dot product attention picks its kernel by the GPU, which is not there. The choice below is what torch 2.11 with cuDNN
# 9.19 made on an H100 in 480 combinations of type, head size, mask and grouping: cuDNN's on compute capability 9.0 and 10.0,
# else flash, which takes no mask, else the memory-efficient one, which takes no grouped heads, else the plain products.
# Whether cuDNN's goes first on those two: torch 2.10 and later ask for cuDNN 9.15.1 or later (the wheel of 2.10 for CUDA 12.8
# has 9.10: no); 2.5.0 did, 2.5.1 (pytorch/pytorch#138522) to 2.9.1 do not.
def cudnn_attention_first(tracer):
    version = tracer.version
    if tracer.capability not in ((9, 0), (10, 0)) or not getattr(tracer.torch.backends.cuda, "cudnn_sdp_enabled", lambda: False)():
        return False
    if version >= (2, 10):
        return tracer.cudnn_version > 91500 and os.environ.get("TORCH_CUDNN_SDPA_DEPRIORITIZED") != "1"
    return version == (2, 5) and tracer.torch.__version__.startswith("2.5.0")


def patch_attention(tracer):
    torch = tracer.torch
    functional = torch.nn.functional
    real = functional.scaled_dot_product_attention
    aten = torch.ops.aten

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

        cudnn = cudnn_attention_first(tracer)
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
        # Since torch 2.14 (pytorch/pytorch#191085) it takes grouped heads, too.
        even = 8 if half else 4 if tracer.capability >= (8, 0) else 1  # values of a head that it loads at once (minimum_gemm_alignment)
        fits = size % even == 0 and value.shape[-1] % even == 0
        if backends.mem_efficient_sdp_enabled() and rows and four and fits and (not grouped or tracer.version >= (2, 14)):
            if grouped and grad:
                tracer.file.note("assumed", "what the memory-efficient attention kernel takes to add up the gradients of grouped heads is not counted", tracer.source())
            mask = bias()
            if mask is not None:
                if mask.shape[-1] % 8:
                    mask = torch.nn.functional.pad(mask, (0, 8 - mask.shape[-1] % 8))[..., :attn_mask.shape[-1]]
                mask = mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
            attention_call(tracer, query, key, 1)
            return aten._scaled_dot_product_efficient_attention(query, key, value, mask, grad, dropout_p, is_causal, scale=scale)[0]
        more = {"enable_gqa": True} if enable_gqa else {}
        return aten._scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **more)[0]

    tracer.attention = attention
    as_builtin(torch, attention, "aten::scaled_dot_product_attention")
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
            autocast = torch.is_autocast_enabled("cuda")
            if autocast:
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
                # PyTorch puts no weights of bf16 side by side (torch.backends.cudnn.is_acceptable), but those that autocast made.
                whole = None if data.dtype == torch.bfloat16 and not autocast else torch.as_strided(weights[0].detach(), (total,), (1,), 0) if len({w.untyped_storage()._cdata for w in weights}) == 1 \
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
    if tracer.compiling:
        return
    site = tracer.file.site("sdpa", tracer.modules[-1] if tracer.modules else "", tracer.source(), tracer.phase)
    tracer.file.call(site, [kind, query.element_size() * 8, *query.shape[:3], key.shape[2], query.shape[3], key.shape[1]])


