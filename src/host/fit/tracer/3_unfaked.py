# ---- operators that have no fake kernel -------------------------------------------------------------------------------------

# By name what they return, made as the kernels of a GPU make it.
def unfaked(tracer):
    torch = tracer.torch
    like = torch.empty_like
    first = lambda a, *args, **kwargs: like(a)
    second = lambda a, b, *args, **kwargs: like(b)

    def gru_cell(inputs, hidden, hx, input_bias=None, hidden_bias=None):
        kept = hx.new_empty(hx.shape[0], 5 * hx.shape[1])
        return like(hx), kept

    def gru_cell_backward(grad, kept, has_bias):
        gates = [grad.new_empty(grad.shape[0], 3 * grad.shape[1]) for _ in range(2)]
        return (*gates, like(grad), *(gate.sum(0) if has_bias else None for gate in gates))

    def learnable_backward(grad, x, scale, zero, *args, **kwargs):
        out, each, other = like(x), like(x), like(x)
        return out, like(scale), like(zero)

    def dirichlet(alpha, generator=None):
        drawn = like(alpha)
        return like(drawn)

    def equal(a, b):
        if a.shape != b.shape:
            return False
        if a is b:
            return True
        known = [tracer.shadows.get(t) if isinstance(t, tracer.FakeTensor) else t for t in (a, b)]
        if known[0] is not None and known[1] is not None:
            return torch.equal(*known)
        tracer.file.note("data_dependent", "bool value read; False was given", tracer.source())
        like(a, dtype=torch.bool)
        return False

    # With a length given, as metrics give the number of classes, no value is greater.
    def bincount(x, weights=None, minlength=0):
        known = tracer.shadows.get(x) if isinstance(x, tracer.FakeTensor) else None
        if known is not None and weights is None:
            return torch.ops.aten._to_copy.default(torch.bincount(known, minlength=minlength), device=x.device)
        if not minlength:
            raise tracer.DynamicShape(torch.ops.aten.bincount.default)
        return x.new_empty(minlength, dtype=torch.int64 if weights is None else torch.float32 if weights.dtype == torch.float32 else torch.float64)

    # In evaluation (aten/src/ATen/native/transformers/transformer.cpp).
    def encoder_layer(src, dim, heads, qkv, qkv_bias, proj, proj_bias, gelu, norm_first, eps, *others):
        norm_1, shift_1, norm_2, shift_2, w1, b1, w2, b2, mask, kind = (*others, None, None)[:10]
        norm = lambda x, scale, shift: torch.layer_norm(x, (dim,), scale, shift, eps)
        x = norm(src, norm_1, shift_1) if norm_first else src
        x = torch._native_multi_head_attention(x, x, x, dim, heads, qkv, qkv_bias, proj, proj_bias, mask, False, True, kind)[0].add_(src)
        before = x = x if norm_first else norm(x, norm_1, shift_1)
        if norm_first:
            x = norm(x, norm_2, shift_2)
        x = torch._addmm_activation(b1, x.reshape(-1, dim), w1.t(), use_gelu=gelu)
        x = torch.addmm(b2, x, w2.t()).view(before.shape).add_(before)
        return x if norm_first else norm(x, norm_2, shift_2)

    # Whose kernel is put together of others (aten/src/ATen/native/Loss.cpp).
    def cross_entropy_of_logits(x, target, weight=None, pos_weight=None, reduction=1):
        log = torch.ops.aten.log_sigmoid_forward(x)[0]
        if pos_weight is not None:
            log.mul_((pos_weight - 1).mul(target).add_(1))
        loss = (1 - target).mul_(x).sub_(log)
        if weight is not None:
            loss.mul_(weight)
        return loss if reduction == 0 else loss.mean() if reduction == 1 else loss.sum()

    # Of 32-bit values and fp16 an own product for each group, into rows of whole 16 bytes; the fake kernel wants bf16.
    def grouped_products(a, b, offs=None, bias=None, out_dtype=None):
        each = [tensor.shape[0] for tensor in (a, b) if tensor.dim() == 3]
        lead = [] if len(each) == 1 else [each[0] if each else offs.shape[0]]
        dtype = out_dtype or a.dtype
        rows, columns, whole = a.shape[-2], b.shape[-1], 16 // dtype.itemsize
        padded = (columns + whole - 1) // whole * whole
        return a.new_empty_strided((*lead, rows, columns), (*[rows * padded for _ in lead], padded, 1), dtype=dtype)

    found = {
        "_grouped_mm": grouped_products, "_thnn_fused_gru_cell": gru_cell, "_thnn_fused_gru_cell_backward": gru_cell_backward,
        "cudnn_grid_sampler": lambda x, grid: x.new_empty(*x.shape[:2], *grid.shape[1:-1]),
        "cudnn_grid_sampler_backward": lambda x, grid, grad: (like(x), like(grid)),
        "_standard_gamma": first, "_standard_gamma_grad": first, "_dirichlet_grad": first, "_sample_dirichlet": dirichlet, "binomial": first,
        "multi_margin_loss_backward": second, "multilabel_margin_loss_backward": second,
        "_fake_quantize_learnable_per_tensor_affine": first, "_fake_quantize_learnable_per_channel_affine": first,
        "_fake_quantize_learnable_per_tensor_affine_backward": learnable_backward,
        "_fake_quantize_learnable_per_channel_affine_backward": learnable_backward,
        "geqrf": lambda a: (like(a), a.new_empty(*a.shape[:-2], min(a.shape[-2:]))), "equal": equal, "bincount": bincount,
        "_transformer_encoder_layer_fwd": encoder_layer, "binary_cross_entropy_with_logits": cross_entropy_of_logits,
        # Whether padding is at the end decides if TransformerEncoder leaves it out in evaluation: reckoned with it.
        "_nested_tensor_from_mask_left_aligned": lambda *args: False,
    }
    for name in ("fake_quantize_per_tensor_affine_cachemask", "fake_quantize_per_channel_affine_cachemask",
                 "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams"):
        found[name] = lambda a, *args, **kwargs: (like(a), like(a, dtype=torch.bool))
    found.update(sequences_unfaked(tracer))
    found.update(sparse_unfaked(tracer))
    aten = torch.ops.aten
    found = {getattr(aten, name).default: function for name, function in found.items() if hasattr(aten, name)}

    # Products with a type of their own, which PyTorch 2.11 takes apart wrongly.
    def product(*args, out=None, **kwargs):
        a, b, dtype = args[-3:]
        return a.new_empty(*a.shape[:-1], b.shape[-1], dtype=dtype) if out is None else out

    for name in ("mm", "bmm", "addmm", "baddbmm"):
        for overload in ("dtype", "dtype_out"):
            if hasattr(getattr(aten, name), overload):
                found[getattr(getattr(aten, name), overload)] = product
    return found


# The values that differ, where they came from and how many there are of each, if all differ. By operator: where it is told whether
# the last two are wanted.
UNIQUE = {"aten::_unique2": (2, 3), "aten::unique_dim": (3, 4), "aten::unique_consecutive": (1, 2)}


def all_distinct(torch, name, x, *args, **kwargs):
    given = (x, *args)
    flat = name != "aten::unique_dim" and not (name == "aten::unique_consecutive" and len(given) > 3 and given[3] is not None)
    count = x.numel() if flat else x.shape[given[1] if name == "aten::unique_dim" else given[3]]
    wanted = [kwargs.get(key, False) or len(given) > at and bool(given[at]) for at, key in zip(UNIQUE[name], ("return_inverse", "return_counts"))]
    values = x.new_empty(count if flat else x.shape)
    places = x.new_empty((x.shape if flat else (count,)) if wanted[0] else 0, dtype=torch.int64)
    counts = x.new_empty(count if wanted[1] else 0, dtype=torch.int64)
    return values, places, counts
