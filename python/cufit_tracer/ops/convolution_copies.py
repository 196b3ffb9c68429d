# SPDX-License-Identifier: Apache-2.0
"""Convolutions of cuDNN that copy their operands."""

from ..tensors import runs_last, size_of, suggests_last
from .kernel_calls import tell_forward, tell_gradient, tell_sum_of_bias


def formats_of(torch):
    return {4: torch.channels_last, 5: torch.channels_last_3d}


def last_first(tensor):
    return tensor.dim() in (4, 5) and suggests_last(tensor)


# That of cuDNN for a convolution of these, which knows no channels last of doubles.
def format_of(torch, x, weights):
    last = runs_last(torch, x, weights)
    return formats_of(torch)[x.dim()] if last else torch.contiguous_format


# Of one channel per group, which PyTorch's own kernels make.
def own_kernel(torch, func, args):
    at = 0 if func is torch.ops.aten.convolution.default else 1
    x, w, transposed, groups = args[at], args[at + 1], args[at + 6], args[at + 8]
    half_last = last_first(x) and x.dtype != torch.float32
    return groups == x.shape[1] > 1 and w.shape[1] == 1 and not transposed and not half_last


# In the order of aten/src/ATen/native/Convolution.cpp and cudnn/ConvShared.cpp: the input before,
# the weights behind the result; the gradient before where it is of another format, else, where it
# is a part of a larger one, by each pass for itself; that of the bias is a sum when all of these
# are gone. False: nothing to copy, or another kernel.
def convolve(tracer, func, args, out, site):
    torch = tracer.torch
    aten = torch.ops.aten
    forward = func is aten.convolution.default
    if not forward and func is not aten.convolution_backward.default:
        return False
    if own_kernel(torch, func, args):
        return False
    copied = CopiedConvolution(tracer, args, forward)
    if not copied.any():
        return False
    copied.tell(out, site)
    return True


class CopiedConvolution:
    def __init__(self, tracer, args, forward):
        torch = tracer.torch
        self.tracer, self.args, self.forward = tracer, args, forward
        self.grad, self.x, self.weights = (None, *args[:2]) if forward else args[:3]
        self.wants = (True, False, False) if forward else args[10]
        self.format = format_of(torch, self.x, self.weights)
        self.x_aside = self.aside(self.x) and (forward or self.wants[1])
        self.grad_aside = self.aside(self.grad)
        self.weights_aside = self.aside(self.weights) and self.wants[0]
        last = self.format != torch.contiguous_format if self.x_aside else last_first(self.x)
        self.other_format = self.grad_aside and (args[7] or last_first(self.grad) != last)

    def any(self):
        return self.x_aside or self.grad_aside or self.weights_aside

    def aside(self, t):
        return t is not None and t.numel() > 0 and not t.is_contiguous(memory_format=self.format)

    def take(self, tensors, site):
        return [self.tracer.file.alloc(size_of(t), site) for t in tensors]

    def release(self, storages):
        for storage in storages:
            self.tracer.file.free(storage)

    def tell(self, out, site):
        tracer, args = self.tracer, self.args
        before = [self.x] if self.x_aside else []
        before += [self.grad] if self.other_format else []
        held = self.take(before, site)
        each = [self.grad] if self.grad_aside and not self.other_format else []
        if self.wants[0]:
            self.tell_data(out, site, each)
        if self.wants[1]:
            copies = self.take(each, site)
            tell_gradient(tracer, args, 2)
            tracer.tell(out[1], site)
            self.release(copies)
        self.release(held)
        if self.wants[2]:
            tell_sum_of_bias(tracer, args)

    # The result, or the gradient of the data.
    def tell_data(self, out, site, each):
        behind = [*([self.weights] if self.weights_aside else []), *each]
        if not behind:  # the call then names what follows it
            self.tell_call(out)
        self.tracer.tell(out if self.forward else out[0], site)
        copies = self.take(behind, site)
        if behind:
            self.tell_call(out)
        self.release(copies)

    def tell_call(self, out):
        if self.forward:
            tell_forward(self.tracer, self.args, out)
        else:
            tell_gradient(self.tracer, self.args, 1)
