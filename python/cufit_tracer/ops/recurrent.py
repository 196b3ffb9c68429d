# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers of cuDNN."""


# cuDNN's operator by hand, since the way there asks the driver. What is copied for it is held to
# the end of the call.
def patch_recurrent(tracer):
    from torch import _VF

    for name, mode in (("rnn_relu", 0), ("rnn_tanh", 1), ("lstm", 2), ("gru", 3)):
        setattr(_VF, name, by_cudnn(tracer, getattr(_VF, name), mode))


def by_cudnn(tracer, real, mode):
    torch = tracer.torch

    def run(*args):
        if args[0].device.type != "cuda":
            return real(*args)
        packed = isinstance(args[1], torch.Tensor) and not isinstance(args[2], bool)
        packed = packed and args[1].dtype == torch.int64
        if packed:
            data, sizes, hidden, weights, bias, layers, dropout, train, both = args
            first, sizes = False, sizes.tolist()
        else:
            data, hidden, weights, bias, layers, dropout, train, both, first = args
            sizes = []
        hx, cx = hidden if mode == 2 else (hidden, None)
        autocast = torch.is_autocast_enabled("cuda")
        if autocast:
            data, hx, cx, weights, flat = in_half(torch, data, hx, cx, weights)
        size = hx.shape[-1]
        hidden_size = weights[0].shape[0] // {2: 4, 3: 3}.get(mode, 1)
        projected = size if size != hidden_size else 0
        state = dropout_state(tracer) if dropout > 0 and train else None
        whole = weights_in_one_piece(torch, data.dtype, weights, autocast)
        turns = first and not packed  # cuDNN has the sequence first
        with torch.autocast("cuda", enabled=False):
            turned = data.transpose(0, 1) if turns else data
            out = torch.ops.aten._cudnn_rnn(
                turned,
                weights,
                4 if bias else 2,
                whole,
                hx,
                cx,
                mode,
                hidden_size,
                projected,
                layers,
                False,
                dropout if train else 0.0,
                train,
                both,
                sizes,
                state,
            )
        result = out[0].transpose(0, 1) if turns else out[0]
        return (result,) + tuple(out[1:3] if mode == 2 else out[1:2])

    return run


# What autocast makes of the operands of a layer.
def in_half(torch, data, hx, cx, weights):
    dtype = torch.get_autocast_dtype("cuda")
    data, hx, cx = (t if t is None else t.to(dtype) for t in (data, hx, cx))
    flat = torch.cat([w.to(dtype).reshape(-1) for w in weights])
    return data, hx, cx, parts_of(flat, weights), flat


# Views of one tensor with the shapes of others, side by side.
def parts_of(whole, like):
    parts, at = [], 0
    for t in like:
        parts.append(whole[at : at + t.numel()].view(t.shape))
        at += t.numel()
    return parts


# Kept for ever; its size on a GPU of 132 multiprocessors.
def dropout_state(tracer):
    if tracer.dropout_state is None:
        tracer.dropout_state = tracer.torch.empty(6488064, dtype=tracer.torch.uint8, device="cuda")
    return tracer.dropout_state


# PyTorch puts no weights of bf16 side by side (torch.backends.cudnn.is_acceptable), but those that
# autocast made.
def weights_in_one_piece(torch, dtype, weights, autocast):
    with torch.no_grad():
        total = sum(w.numel() for w in weights)
        if dtype == torch.bfloat16 and not autocast:
            return None
        if len({w.untyped_storage()._cdata for w in weights}) == 1:
            return torch.as_strided(weights[0].detach(), (total,), (1,), 0)
        return torch.empty(total, dtype=dtype, device="cuda")


# Weights that are in no single piece are copied into one, which is kept for backward.
def with_weights(tracer, args, out):
    if args[3] is not None:
        return out
    total = sum(w.numel() for w in args[1])
    with tracer.fake:
        return out[:4] + (tracer.torch.empty(total, dtype=args[0].dtype, device="cuda"),)


# What cuDNN keeps of a recurrent layer for its backward, of which the fake kernel knows nothing: so
# many values per element of the output, and between layers a bit per element and direction where it
# drops out, rounded up to 32 bytes. Equal to what torch 2.11 with cuDNN 9.19 kept on an H100 for 42
# LSTM and GRU layers of seven shapes, to the byte.
def with_reserve(tracer, args, out):
    torch = tracer.torch
    x, mode, hidden, layers, dropout, both = args[0], args[6], args[7], args[9], args[11], args[13]
    each = {2: 5, 3: 6}.get(mode, 1) * layers + layers - 1
    elements = x.numel() // x.shape[-1] * hidden * (2 if both else 1)
    size = each * elements * x.element_size() + 256
    if dropout > 0:
        size += (layers - 1) * (2 if both else 1) * ((elements // 8 + 31) // 32 * 32)
    with tracer.fake:
        reserve = torch.empty(size, dtype=torch.uint8, device="cuda")
    return out[:3] + (reserve,) + out[4:]


# It has no fake kernel: gradients of the input, the states and, side by side, the weights.
def recurrent_backward(torch):
    def run(*args):
        x, weights, hx, cx = args[0], args[1], args[4], args[5]
        whole = torch.empty(sum(w.numel() for w in weights), dtype=x.dtype, device="cuda")
        parts = parts_of(whole, weights)
        of_cell = torch.empty_like(cx) if cx is not None else torch.empty(0, device="cuda")
        return torch.empty_like(x), torch.empty_like(hx), of_cell, parts

    return run


# First the gradients of the input and the states, then those of the weights; for each the operands
# in one piece.
def tell_recurrent_backward(tracer, args, out, site):
    file = tracer.file
    copied = [None if t is None or t.is_contiguous() else t for t in (args[0], args[7])]
    sizes = [0 if t is None else t.numel() * t.element_size() for t in copied]
    layer = args[10], args[11], args[13], args[17], args[18], args[15] > 0 and args[16]
    for results, taken in ((out[:3], sizes), (out[3], sizes[:1])):
        copies = [file.alloc(size, site) for size in taken if size]
        recurrent(tracer, args[0], args[1], *layer, True)
        tracer.tell(results, site)
        for storage in copies:
            file.free(storage)


# dtype bits, mode (0 relu, 1 tanh, 2 LSTM, 3 GRU), layers, directions, hidden size, elements of the
# input, sequence length, batch, bytes of the weights, dropout, packed, size of the input, backward,
# fp32 or fp16.
def recurrent(tracer, x, weights, mode, hidden, layers, both, packed, drops, backward):
    torch, file = tracer.torch, tracer.file
    module = tracer.modules[-1] if tracer.modules else ""
    place = file.site("rnn", module, tracer.source(), tracer.phase)
    length, batch = (len(packed), packed[0]) if packed else x.shape[:2]
    numbers = [x.element_size() * 8, mode, layers, 2 if both else 1, hidden, x.numel()]
    numbers += [length, batch, sum(w.numel() * w.element_size() for w in weights)]
    numbers += [int(drops), int(bool(packed)), x.shape[-1], int(backward)]
    numbers += [int(x.dtype in (torch.float32, torch.float16))]
    file.call(place, numbers)
