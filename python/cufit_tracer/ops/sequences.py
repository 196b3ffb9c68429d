# SPDX-License-Identifier: Apache-2.0
"""Packed sequences and CTC, as the kernels of a GPU take memory one after the other
(aten/src/ATen/native/PackedSequence.cpp, aten/src/ATen/native/cuda/LossCTC.cu)."""

from ..tensors import elements, in_one_piece


def packing_kernels(tracer):
    torch = tracer.torch

    # Lengths are on the CPU; those that a GPU reckoned from other than whole numbers are not known.
    def pack(input, lengths, batch_first):
        longest, batch = (input.shape[1], input.shape[0]) if batch_first else input.shape[:2]
        known = tracer.shadows.get(lengths) if isinstance(lengths, tracer.FakeTensor) else lengths
        if known is None:
            operator = torch.ops.aten._pack_padded_sequence.default
            said = "the shape of what %s returns depends on values" % operator
            tracer.file.note("data_dependent", said, tracer.source())
            known = [longest] * batch
        known = sorted((int(length) for length in known), reverse=True)
        first = input.transpose(0, 1) if batch_first else input
        steps, sizes, done = [], [], 0
        for at in range(batch - 1, -1, -1):
            if known[at] > done:
                shape = known[at] - done, at + 1, *first.shape[2:]
                if not in_one_piece(shape, first.stride()):
                    steps.append(elements(shape) * first.element_size())
                sizes += [at + 1] * (known[at] - done)
                done = known[at]
        held = hold(steps)
        result = input.new_empty(sum(sizes), *first.shape[2:])
        for storage in held:
            tracer.file.free(storage)
        return result, torch.tensor(sizes)

    # In one piece each, until they are joined.
    def hold(steps):
        module = tracer.modules[-1] if tracer.modules else ""
        site = tracer.file.site("contiguous", module, tracer.source(), tracer.phase)
        return [tracer.file.alloc(size, site) for size in steps]

    return {"_pack_padded_sequence": pack}


# The gradient of a packed sequence is written step by step into zeros: thousands of operators that
# take nothing, in place of which there is one here.
def patch_packing(tracer):
    torch = tracer.torch
    functions = torch.nn.utils.rnn._VF
    real = functions._pack_padded_sequence

    class Packed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input, lengths, batch_first):
            ctx.shape, ctx.batch_first = input.shape, batch_first
            data, sizes = real(input, lengths, batch_first)
            ctx.mark_non_differentiable(sizes)
            return data, sizes

        @staticmethod
        def backward(ctx, grad, _):
            if not ctx.batch_first:
                return grad.new_zeros(ctx.shape), None, None
            batch, steps, *rest = ctx.shape
            return grad.new_zeros(steps, batch, *rest).transpose(0, 1), None, None

    def pack(input, lengths, batch_first):
        if isinstance(input, tracer.FakeTensor):
            return Packed.apply(input, lengths, batch_first)
        return real(input, lengths, batch_first)

    functions._pack_padded_sequence = pack


def ctc_kernels(tracer):
    torch = tracer.torch
    aten = torch.ops.aten

    # Which the kernel holds until its results are there.
    def of_lengths(lengths):
        return [torch.empty(len(lengths), dtype=torch.int64, device="cuda") for _ in range(3)]

    def ctc(log_probs, targets, inputs, lengths, blank=0, zero_infinity=False):
        length, batch = log_probs.shape[0], log_probs.shape[-2] if log_probs.dim() == 3 else 1
        held = of_lengths(lengths)
        alpha = log_probs.new_empty(batch, length, 2 * max(lengths, default=0) + 1)
        result = log_probs.new_empty(batch if log_probs.dim() == 3 else ()), alpha
        del held
        return result

    def ctc_backward(
        grad_out, log_probs, targets, inputs, lengths, loss, alpha, blank, zero_infinity=False
    ):
        held = of_lengths(lengths)
        beta = torch.empty_like(alpha, memory_format=torch.contiguous_format)
        grad = torch.empty_like(log_probs, memory_format=torch.contiguous_format)
        if 2 * log_probs.shape[0] + 24 * alpha.shape[0] // 10 + 2 * log_probs.shape[-1] // 10 > 450:
            torch.logsumexp(alpha[:, :, ::2] + beta[:, :, ::2], 2, True)
            if zero_infinity:
                grad = torch.where(
                    loss.view(1, -1, 1) == float("inf"),
                    torch.zeros((), dtype=grad.dtype, device="cuda"),
                    grad,
                )
        del held
        return grad

    # Its workspace is not known.
    def ctc_of_cudnn(log_probs, targets, inputs, lengths, blank, deterministic, zero_infinity):
        tracer.file.note("no_fake_kernel", str(aten._cudnn_ctc_loss.default), tracer.source())
        grad = torch.empty_like(log_probs, memory_format=torch.contiguous_format)
        return log_probs.new_empty(log_probs.shape[1]), grad

    def by_cudnn(log_probs, targets, inputs, lengths, blank):
        if tracer.ctc_by_cudnn:
            return True
        whole = all(length == log_probs.shape[0] for length in inputs)
        fits = targets.device.type == "cpu" and whole
        return fits and cudnn_takes(torch, log_probs, targets, inputs, lengths, blank)

    return {
        "_ctc_loss": ctc,
        "_ctc_loss_backward": ctc_backward,
        "_cudnn_ctc_loss": ctc_of_cudnn,
        "_use_cudnn_ctc_loss": by_cudnn,
        "_use_miopen_ctc_loss": lambda *args: False,
    }


# What cuDNN's CTC loss asks for, whichever way the lengths come
# (aten/src/ATen/native/cudnn/LossCTC.cpp).
def cudnn_takes(torch, log_probs, targets, inputs, lengths, blank):
    return (
        torch.backends.cudnn.enabled
        and blank == 0
        and log_probs.dim() == 3
        and log_probs.dtype == torch.float32
        and targets.dim() == 1
        and targets.dtype == torch.int32
        and targets.is_contiguous()
        and all(b < 256 and b <= a for a, b in zip(inputs, lengths))
    )


# Lengths that are tensors go to the CPU and from there on as numbers, but not while somebody
# traces.
def patch_ctc(tracer):
    torch = tracer.torch
    real = torch.ctc_loss
    tracer.ctc_by_cudnn = False

    def numbers(lengths, most, batch):
        if isinstance(lengths, tracer.FakeTensor):
            known = tracer.shadows.get(lengths)
            if known is None:
                said = "values of a %s tensor read; zeros were given" % str(lengths.dtype)[6:]
                tracer.file.note("data_dependent", said, tracer.source())
                return [most] * batch
            lengths = known
        return lengths.reshape(-1).tolist()

    def ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank=0, reduction=1, zero_infinity=False
    ):
        more = blank, reduction, zero_infinity
        lengths_given = input_lengths, target_lengths
        if not isinstance(log_probs, tracer.FakeTensor):
            return real(log_probs, targets, *lengths_given, *more)
        if not all(isinstance(lengths, torch.Tensor) for lengths in lengths_given):
            return real(log_probs, targets, *lengths_given, *more)
        batch = log_probs.shape[1] if log_probs.dim() == 3 else 1
        inputs = numbers(input_lengths, log_probs.shape[0], batch)
        most = targets.shape[1] if targets.dim() == 2 else targets.numel() // batch
        lengths = numbers(target_lengths, most, batch)
        tracer.ctc_by_cudnn = (
            input_lengths.dtype == target_lengths.dtype == torch.int32
            and cudnn_takes(torch, log_probs, targets, inputs, lengths, blank)
        )
        try:
            return real(log_probs, targets, inputs, lengths, *more)
        finally:
            tracer.ctc_by_cudnn = False

    torch.ctc_loss = ctc_loss
