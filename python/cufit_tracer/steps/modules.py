# SPDX-License-Identifier: Apache-2.0
"""Modules and their parameters: names, categories, where a step begins."""

from ..event_file import BUFFER, PARAMETER, SETUP
from ..program.lazy_modules import place_lazy
from ..tensors import tensors_within


def patch_modules(tracer):
    patch_parameters(tracer)
    patch_data(tracer)
    patch_apply(tracer)
    patch_train(tracer)
    patch_flattening(tracer)
    patch_initialisers(tracer)
    patch_forward(tracer)


# Every parameter is fake from the start: optimizers keep hold of it, and it cannot become fake
# later.
def patch_parameters(tracer):
    torch = tracer.torch
    real_new = torch.nn.Parameter.__new__

    def is_plain(data):
        if not isinstance(data, torch.Tensor) or isinstance(data, tracer.FakeTensor):
            return False
        return data.device.type == "cpu" and type(data) is torch.Tensor

    def new(cls, data=None, requires_grad=True):
        if is_plain(data):
            value = data.detach()
            with tracer.fake:
                data = tracer.fake.from_tensor(value)
            if value.numel() <= 4096:
                tracer.shadows[data] = value
        return real_new(cls, data, requires_grad)

    torch.nn.Parameter.__new__ = new
    patch_class_of_parameters(tracer)


# accelerate (`init_empty_weights`, and with it `from_pretrained` of diffusers and transformers)
# makes a parameter anew by its class, `type(p)(p.to("meta"), **p.__dict__)`. The class is
# FakeTensor here, which is made in another way.
def patch_class_of_parameters(tracer):
    torch, FakeTensor = tracer.torch, tracer.FakeTensor
    real_new = FakeTensor.__new__

    def new(cls, *args, **kwargs):
        data = args[0] if args else kwargs.get("data")
        if not isinstance(data, torch.Tensor):
            return real_new(cls, *args, **kwargs)
        wants_gradients = args[1] if len(args) > 1 else kwargs.get("requires_grad", True)
        return torch.nn.Parameter(data, wants_gradients)

    FakeTensor.__new__ = staticmethod(new)


# A fake tensor keeps its device beside what it holds: `p.data = p.to("cuda")` sets both.
def patch_data(tracer):
    torch, FakeTensor = tracer.torch, tracer.FakeTensor
    real = torch._C.TensorBase.data if hasattr(torch._C, "TensorBase") else torch.Tensor.data

    def assign(self, value):
        if not isinstance(value, FakeTensor):
            value = tracer.fake.from_tensor(value)
        real.__set__(self, value)
        self.fake_device = value.fake_device

    FakeTensor.data = property(real.__get__, assign)


# As Module._apply does where it may set `data`.
def patch_apply(tracer):
    torch = tracer.torch
    from torch.nn.parameter import is_lazy

    def apply_to(module, key, parameter, holder, fn):
        if is_lazy(holder):
            place_lazy(tracer, holder, fn)
            return
        with torch.no_grad():
            value = fn(holder)
        if value is holder:
            return
        # To or from "meta" a parameter is another one.
        alike = torch._has_compatible_shallow_copy_type(holder, value)
        if isinstance(holder, tracer.FakeTensor) and alike:
            holder.data = value
        elif holder is parameter:
            module._parameters[key] = torch.nn.Parameter(value, parameter.requires_grad)

    def apply(self, fn, recurse=True):
        if recurse:
            for child in self.children():
                child._apply(fn)
        for key, parameter in self._parameters.items():
            if parameter is None:
                continue
            for holder in (parameter, parameter.grad):
                if holder is not None:
                    apply_to(self, key, parameter, holder, fn)
        for key, buffer in self._buffers.items():
            if is_lazy(buffer):
                place_lazy(tracer, buffer, fn)
            elif buffer is not None:
                self._buffers[key] = fn(buffer)
        return self

    torch.nn.Module._apply = apply


# Which modules the program tells to train or to evaluate, not those within them.
def patch_train(tracer):
    Module = tracer.torch.nn.Module
    real_train, deep = Module.train, []

    def train(self, mode=True):
        if not deep:
            tracer.told.add(self)
        deep.append(1)
        try:
            return real_train(self, mode)
        finally:
            deep.pop()

    Module.train = train


# cuDNN wants the weights of a layer side by side.
def patch_flattening(tracer):
    torch = tracer.torch

    def on_gpu(w):
        return isinstance(w, tracer.FakeTensor) and w.device.type == "cuda"

    def flatten(self):
        weights = [w for w in self._flat_weights if on_gpu(w)]
        if not weights or len(weights) != len(self._flat_weights):
            return
        if len({w.untyped_storage()._cdata for w in weights}) == 1:
            return
        with torch.no_grad():
            total = sum(w.numel() for w in weights)
            whole = torch.empty(total, dtype=weights[0].dtype, device="cuda")
            at = 0
            for w in weights:
                w.data = whole[at : at + w.numel()].view(w.shape)
                at += w.numel()

    torch.nn.RNNBase.flatten_parameters = flatten


# What they would draw is drawn for small tensors alone.
def patch_initialisers(tracer):
    torch = tracer.torch

    def skipping(function, name):
        def skip(tensor, *args, **kwargs):
            if not isinstance(tensor, tracer.FakeTensor):
                return function(tensor, *args, **kwargs)
            value = tracer.shadows.get(tensor)
            if value is not None:
                with torch.no_grad():
                    function(value, *args, **kwargs)
            else:
                tracer.draws.skipped(name, tensor, *args, **kwargs)
            return tensor

        return skip

    for name in dir(torch.nn.init):
        function = getattr(torch.nn.init, name)
        if name.endswith("_") and not name.startswith("_") and callable(function):
            setattr(torch.nn.init, name, skipping(function, name))


# Frozen parts run before the first step, too (a VAE that fills a cache).
def could_train(tracer, module, args):
    if any(parameter.requires_grad for parameter in module.parameters()):
        return True
    return any(tensor.requires_grad for tensor in tensors_within(tracer.torch, args))


def patch_forward(tracer):
    torch = tracer.torch
    from torch.nn.modules import module as hooks

    def tell_parameters(module):
        if module in tracer.names:
            return
        for name, child in module.named_modules():
            tracer.names.setdefault(child, name or type(child).__name__)
        for parameter in module.parameters():
            tracer.categorise(parameter.data, PARAMETER)
        for buffer in module.buffers():
            tracer.categorise(buffer, BUFFER)

    # Of a module that no other calls.
    def before_outermost(module):
        grad = torch.is_grad_enabled()
        tracer.outermost.add(module)
        if module not in tracer.names:
            tell_parameters(module)
        if not module.training and tracer.steps:
            tracer.evaluated = True
        elif not module.training and not grad:
            tracer.repeats.evaluates(module)
        elif module.training and module in tracer.repeats.watched:
            tracer.evaluated = True
        if tracer.after.began:
            trains = grad and module.training
            trains = trains and any(p.requires_grad for p in module.parameters())
            tracer.after.forward(module, trains)

    def before(module, args):
        if not tracer.modules:
            before_outermost(module)
        if torch.is_grad_enabled():
            if tracer.by_hand and not tracer.modules and module.training:
                tracer.by_hand = None
                tracer.step_ends()
            tracer.repeats.trains()
            if tracer.phase != SETUP or could_train(tracer, module, args):
                tracer.step_begins()
            tracer.shows(module, args)
        tracer.modules.append(tracer.names.get(module, type(module).__name__))

    def after(module, args, out):
        if tracer.modules:
            tracer.modules.pop()
            if len(tracer.modules) < tracer.shown:
                tracer.shown = 0

    tracer.tell_parameters = tell_parameters
    hooks.register_module_forward_pre_hook(before)
    hooks.register_module_forward_hook(after, always_call=True)
