# ---- how results lie in memory ------------------------------------------------------------------------------------------------

# Where a kernel of the GPU lays out its result otherwise than the fake one does, so that what comes after copies it or does not. On
# an H200 every operator of the training steps of some 50 networks, channels first and last, was compared with its fake kernel: beside
# convolutions, whose format cuDNN decides, and recurrent layers, which 6_kernels.py asks for step by step, these were all.
class Layouts:
    def __init__(self, tracer, fake, blocks):
        self.torch, self.fake, self.blocks, self.FakeTensor = tracer.torch, fake, blocks, tracer.FakeTensor
        aten = tracer.torch.ops.aten
        self.laid_out = {aten.convolution.default: self.as_cudnn_has_it, aten.convolution_backward.default: self.as_cudnn_has_it,
                         aten.native_layer_norm_backward.default: lambda func, args, out: self.first(out, memory_format=self.torch.contiguous_format),
                         aten.native_batch_norm_backward.default: lambda func, args, out: self.first(out, like=args[1]),
                         aten.hardswish_backward.default: lambda func, args, out: self.again(out, like=args[0])}

    def as_gpu_does(self, func, args, out):
        how = self.laid_out.get(func)
        return out if how is None else how(func, args, out)

    def again(self, tensor, like=None, **how):
        if not isinstance(tensor, self.FakeTensor):
            return tensor
        with self.fake:
            other = self.torch.empty_like(tensor if like is None else like, dtype=tensor.dtype, **how)
        return tensor if other.stride() == tensor.stride() or other.shape != tensor.shape else other

    def first(self, out, **how):
        return (self.again(out[0], **how), *out[1:])

    # The fake kernel takes the format of the backend that torch would choose without a GPU.
    def as_cudnn_has_it(self, func, args, out):
        x, w = args[:2] if func is self.torch.ops.aten.convolution.default else args[1:3]
        wanted = self.blocks.format_of(x, w)
        if wanted == self.torch.contiguous_format:
            return out
        again = lambda t: t if t is None or t.dim() != x.dim() else self.again(t, memory_format=wanted)
        return again(out) if isinstance(out, self.torch.Tensor) else tuple(again(t) for t in out)

