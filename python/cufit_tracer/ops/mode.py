# SPDX-License-Identifier: Apache-2.0
"""What an operator of the program makes and takes, where it is not known from before."""

import threading
import weakref

from ..event_file import INPUT
from ..plans.work import tell_work
from ..program.told_values import ToldValues
from .convolution_copies import own_kernel
from .even_counts import EvenCounts
from .kernel_calls import tell_call
from .kept_elements import KeptElements
from .layouts import Layouts
from .missing_kernels import kernels_by_operator
from .recurrent import recurrent_backward, tell_recurrent_backward, with_reserve, with_weights
from .shadows import Shadows, without_device
from .sparse import sparse_on_gpu
from .temporaries import Temporaries

GOES_ON = object()  # no answer yet


class Operators:
    def __init__(self, tracer):
        import torch.utils._pytree as pytree

        self.tracer, self.pytree = tracer, pytree
        torch = self.torch = tracer.torch
        aten = self.aten = torch.ops.aten
        self.FakeTensor, self.fake = tracer.FakeTensor, tracer.fake
        self.one_by_one = threading.RLock()  # of the program's threads
        self.empties = {aten.empty.memory_format, aten.empty_strided.default}
        # Whose values need none.
        self.alike = {aten.zeros_like.default, aten.ones_like.default, aten.full_like.default}
        self.alike |= {aten.new_zeros.default, aten.new_ones.default, aten.new_full.default}
        self.joining = {
            aten.cat.default,
            aten.stack.default,
            aten.full.default,
            aten.new_full.default,
            aten.new_zeros.default,
        }
        self.own = tracer.own_kernels
        self.own.update(kernels_by_operator(tracer))
        self.when = self.when_the_fake_kernel_does_not_do()
        self.temporaries = Temporaries(tracer)
        self.layouts = Layouts(tracer, tracer.fake)
        self.shadows = Shadows(tracer)
        self.kept = KeptElements(tracer, self.shadows)
        self.counts, self.told = EvenCounts(tracer, self.shadows), ToldValues(tracer)

    def when_the_fake_kernel_does_not_do(self):
        torch, aten = self.torch, self.aten

        def sparse(tensors):
            return any(t.layout is not torch.strided for t in tensors)

        def all_sparse(tensors):
            return all(t.layout is torch.sparse_coo for t in tensors)

        when = {aten.mm.default: sparse, aten.addmm.default: sparse, aten.add.Tensor: all_sparse}
        if hasattr(aten, "_grouped_mm"):
            when[aten._grouped_mm.default] = lambda tensors: tensors[0].dtype != torch.bfloat16
        return when

    def tensors_of(self, args, kwargs):
        Tensor, FakeTensor = self.torch.Tensor, self.FakeTensor
        tensors, left = [], [*reversed(kwargs.values()), *reversed(args)]
        while left:
            value = left.pop()
            if isinstance(value, Tensor):
                tensors.append(value)
            elif isinstance(value, (list, tuple)):
                left += reversed(value)
        return tensors, any(isinstance(tensor, FakeTensor) for tensor in tensors)

    def is_cuda(self, device):
        return device is not None and self.torch.device(device).type == "cuda"

    # -- on the CPU

    def run_on_cpu(self, func, args, kwargs, tensors):
        if func in self.empties and not tensors:
            count = 1
            for size in args[0]:
                count *= size
            if count >= self.tracer.FAKE_EMPTY_ELEMENTS:
                with self.one_by_one, self.fake:
                    return func(*args, **unpinned(kwargs))
        self.tracer.draws.real(func)
        return func(*args, **unpinned(kwargs))

    # -- on the device

    # GradientSums.in_place reckons with its way from here, frame by frame.
    def run(self, mode, func, args, kwargs, tensors, device, any_fake):
        aten, tracer = self.aten, self.tracer
        if self.is_awaited(func, kwargs):
            tracer.waits.done()
        if func is aten._local_scalar_dense.default:
            return self.shadows.value_of(func, args[0])
        if tensors and tracer.draws.seeded in func.tags:
            tracer.draws.skipped(func, tensors[0], generator=kwargs.get("generator"))
        out = self.without_fake_kernel(mode, func, args, kwargs, tensors, any_fake)
        if out is GOES_ON:
            out = self.in_place(func, args, kwargs, tensors)
        if out is not GOES_ON:
            return out
        values = self.values(func, args, kwargs, tensors)
        values = self.counts.of(func, args) if values is None else values
        if func._schema.is_mutable:
            if values is None:
                self.shadows.forget(func, args)
            if tracer.by_hand is False:
                several = isinstance(args[0], (list, tuple)) and args[0]
                tracer.written(args[0][0] if several else args[0])
        if func is aten._to_copy.default and not any_fake:  # else torch before 2.5 copies it first
            args = (self.fake.from_tensor(args[0]),) + args[1:]
        out, values = self.faked(func, args, kwargs, tensors, values)
        out = self.as_gpu_makes(func, args, kwargs, out)
        self.keep_values(func, args, kwargs, tensors, out, values)
        self.told.saw(func, args, out)
        if tracer.communicators is not None:
            tracer.communicators.saw(func, args)
        self.kept.saw(func, args)
        tracer.formulas.saw(func, out)
        self.tell(func, args, kwargs, tensors, device, out)
        return out

    # Whether the program waits for the device: it reads a value, or copies to the host.
    def is_awaited(self, func, kwargs):
        if func is self.aten._to_copy.default:
            device = kwargs.get("device")
            to_host = device is not None and self.torch.device(device).type == "cpu"
            return to_host and not kwargs.get("non_blocking")
        return func is self.aten._local_scalar_dense.default

    def without_fake_kernel(self, mode, func, args, kwargs, tensors, any_fake):
        aten, torch = self.aten, self.torch
        if func in self.own and (func not in self.when or self.when[func](tensors)):
            with mode, torch.no_grad():
                return self.own[func](*args, **kwargs)
        if func is aten._to_copy.default and args[0].layout is torch.sparse_coo and not any_fake:
            with mode, torch.no_grad():
                return sparse_on_gpu(torch, args[0], kwargs.get("dtype"))
        if func is aten.is_pinned.default:
            return False
        if func is aten._pin_memory.default:
            return args[0]
        return GOES_ON

    def in_place(self, func, args, kwargs, tensors):
        aten, tracer = self.aten, self.tracer
        adds = func is aten.add.Tensor
        if adds and tracer.sums.in_place(args, kwargs):
            self.shadows.forget(aten.add_.Tensor, args)
            self.tell_work(func, args, kwargs, tensors, args[0])
            return args[0]
        bias = adds and tracer.adds_bias and len(args) == 2
        bias = bias and isinstance(args[0], self.FakeTensor) and args[1].dim() == 1
        if not bias and not tracer.formulas.in_place(func, args):
            return GOES_ON
        self.shadows.forget(aten.add_.Tensor, args)
        self.tell_work(func, args, kwargs, tensors, args[0])
        self.temporaries.tell(self.temporaries.after(func, args, kwargs, args[0]))
        with self.fake:
            return aten.alias.default(args[0])

    # Of small tensors, what the operator makes of their values; None: not known.
    def values(self, func, args, kwargs, tensors):
        most = self.tracer.SHADOW_FLOATS
        if any(t.numel() > most and t.dtype.is_floating_point for t in tensors):
            return None
        dtype = kwargs.get("dtype")
        drawn = self.torch.Tag.nondeterministic_seeded in func.tags
        whole = dtype is not None and not dtype.is_floating_point
        whole = whole or func is self.aten.randperm.default
        whole = whole or (dtype is None and func._schema.name == "aten::randint")
        if tensors or func not in self.empties and (not drawn or whole):
            return self.shadows.call(func, args, kwargs, tensors)
        return None

    def faked(self, func, args, kwargs, tensors, values):
        torch, tracer, fake = self.torch, self.tracer, self.fake
        backward = func is self.aten._cudnn_rnn_backward.default
        try:
            with fake:
                return (recurrent_backward(torch) if backward else func)(*args, **kwargs), values
        except (tracer.DynamicShape, tracer.DataDependent):
            if values is None:
                values = self.shadows.call(func, args, kwargs, tensors)
            out = self.kept.with_all(func, args, kwargs) if values is None else None
            if out is None and values is None:
                said = "the shape of what %s returns depends on values" % func
                tracer.file.note("data_dependent", said, tracer.source())
                raise
            if out is not None:
                values = None if isinstance(out, self.FakeTensor) else out
            with fake:
                return out if values is None else self.like(values), values
        except tracer.Unsupported:
            # The optimizers' kernels of older torch: they write where they are told to and take
            # nothing more.
            if not func._schema.name.startswith("aten::_fused_") or func._schema.returns:
                tracer.file.note("no_fake_kernel", str(func), tracer.source())
                raise
            return None, values

    def like(self, values):
        torch = self.torch

        def empty(t):
            return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="cuda")

        return self.pytree.tree_map_only(torch.Tensor, empty, values)

    def as_gpu_makes(self, func, args, kwargs, out):
        out = self.layouts.as_gpu_does(func, args, out)
        if func is self.aten._cudnn_rnn.default:
            out = with_weights(self.tracer, args, out)
            if kwargs.get("train", args[12] if len(args) > 12 else True):
                out = with_reserve(self.tracer, args, out)
        return self.temporaries.as_made(func, args, kwargs, out)

    def keep_values(self, func, args, kwargs, tensors, out, values):
        torch, aten, fake = self.torch, self.aten, isinstance(out, self.FakeTensor)
        small = fake and out.numel() <= self.tracer.SHADOW_ELEMENTS
        if values is None and func in self.alike and small and not out.dtype.is_floating_point:
            like = torch.empty((), dtype=args[0].dtype).expand(args[0].shape)
            values = func(like, *args[1:], **without_device(torch, kwargs))
        if func is aten.eq.Scalar and values is None and fake:
            out._cufit_equals = weakref.ref(args[0]), args[1]
        if values is None and small and self.shadows.settles(func):
            values = self.shadows.settled(func, args, out)
        if values is not None:
            self.shadows.pair(out, values)
        elif fake:
            self.shadows.guess(func, args, tensors, out)
            self.counts.keep_marks(func, args, out)

    def tell_work(self, func, args, kwargs, tensors, out):
        if self.tracer.counting:
            tell_work(self.tracer, func, args, kwargs, tensors, out)

    def tell(self, func, args, kwargs, tensors, device, out):
        if device is None and tensors and not any(t.device.type == "cuda" for t in tensors):
            return  # shapes alone: DTensor asks for those of the whole
        aten, tracer, temporaries = self.aten, self.tracer, self.temporaries
        name = func.__name__ if hasattr(func, "__name__") else str(func)
        module = tracer.modules[-1] if tracer.modules else ""
        site = tracer.file.site(name.split(".")[0], module, tracer.source(), tracer.phase)
        if func is aten._cudnn_rnn_backward.default:
            tell_recurrent_backward(tracer, args, out, site)
            return
        copies = [tracer.file.alloc(size, site) for size in temporaries.before(func, args, out)]
        if not temporaries.convolve(func, args, out, site):
            tell_call(tracer, func, args, out)
        self.tell_work(func, args, kwargs, tensors, out)
        # The mask is made first; the gradient of weights of one channel per group, which PyTorch's
        # own kernels make.
        backward = func is aten.convolution_backward.default
        if func is aten.native_dropout.default or backward and own_kernel(self.torch, func, args):
            tracer.tell(out[1], site)
        if func is aten._cudnn_rnn.default:
            tracer.tell(out[4], site)
        if tracer.after.began and func in self.joining and isinstance(out, self.FakeTensor):
            tracer.after.joins.add(tracer.file.storages)
        tracer.tell(out, site)
        temporaries.sum_of_norm(func, args, out, site)
        temporaries.tell(temporaries.after(func, args, kwargs, out))
        for storage in copies:
            tracer.file.free(storage)
        if tensors and self.is_batch(tensors, device):
            tracer.categorise(out, INPUT)

    def is_batch(self, tensors, device):
        if device is not None and not isinstance(tensors[0], self.FakeTensor):
            return True
        # Normalised, mixed or turned into floats on the GPU, and before any weight meets it, it
        # still is the batch.
        tracer = self.tracer
        return (
            not tracer.modules
            and tracer.is_input(tensors[0])
            and not any(tensor.requires_grad for tensor in tensors)
        )


def unpinned(kwargs):
    return dict(kwargs, pin_memory=False) if kwargs.get("pin_memory") else kwargs
