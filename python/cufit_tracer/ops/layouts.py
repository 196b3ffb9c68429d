# SPDX-License-Identifier: Apache-2.0
"""How the results of kernels lie in memory.

Where a kernel of the GPU lays out its result otherwise than the fake one does, what comes after
copies it or does not. On an H200 every operator of the training steps of some 50 networks, channels
first and last, was compared with its fake kernel: beside convolutions, whose format cuDNN decides,
and recurrent layers, which recurrent.py asks for step by step, these were all."""

from .convolution_copies import format_of


class Layouts:
    def __init__(self, tracer, fake):
        self.torch, self.fake, self.FakeTensor = tracer.torch, fake, tracer.FakeTensor
        aten = tracer.torch.ops.aten
        self.laid_out = {
            aten.convolution.default: self.as_cudnn_has_it,
            aten.convolution_backward.default: self.as_cudnn_has_it,
            aten.native_layer_norm_backward.default: self.in_one_piece,
            aten.native_batch_norm_backward.default: self.as_the_input,
            aten.hardswish_backward.default: self.as_the_gradient,
        }

    def as_gpu_does(self, func, args, out):
        how = self.laid_out.get(func)
        return out if how is None else how(func, args, out)

    def again(self, tensor, like=None, **how):
        if not isinstance(tensor, self.FakeTensor):
            return tensor
        like = tensor if like is None else like
        with self.fake:
            other = self.torch.empty_like(like, dtype=tensor.dtype, **how)
        return tensor if other.stride() == tensor.stride() or other.shape != tensor.shape else other

    def in_one_piece(self, func, args, out):
        return (self.again(out[0], memory_format=self.torch.contiguous_format), *out[1:])

    def as_the_input(self, func, args, out):
        return (self.again(out[0], like=args[1]), *out[1:])

    def as_the_gradient(self, func, args, out):
        return self.again(out, like=args[0])

    # The fake kernel takes the format of the backend that torch would choose without a GPU.
    def as_cudnn_has_it(self, func, args, out):
        x, w = args[:2] if func is self.torch.ops.aten.convolution.default else args[1:3]
        wanted = format_of(self.torch, x, w)
        if wanted == self.torch.contiguous_format:
            return out

        def again(t):
            other = t is None or t.dim() != x.dim()
            return t if other else self.again(t, memory_format=wanted)

        return again(out) if isinstance(out, self.torch.Tensor) else tuple(again(t) for t in out)
