# SPDX-License-Identifier: Apache-2.0
"""What an operator made of tensors like these the last time, it makes again.

Most operators of a step are such as the program has called before: results of the same shapes, the
same requests for memory. What the first of them did is kept, by the operator and all that its
result follows from, and done again without asking the fake kernel and the rules for memory."""

from .fft import FFTS
from .kernel_calls import MATMULS, tell_call
from .listener import CALL, FREE, PRODUCT, RESULT, TAKE, Listener

PLAIN = {type(None), bool, int, float, str}
# What is known of a tensor's values beside its shape (even_counts.py, shadows.py, mode.py).
HINTS = {"_cufit_marks", "_cufit_even", "_cufit_verdict", "_cufit_equals"}


class KnownOperators:
    MOST, MOST_OF_ONE = 50000, 5000  # kept: in all, of one operator

    def __init__(self, tracer, operators):
        self.tracer, self.operators = tracer, operators
        torch = self.torch = tracer.torch
        aten = torch.ops.aten
        self.FakeTensor, self.file = tracer.FakeTensor, tracer.file
        self.shadows, self.formulas = tracer.shadows.kept, tracer.formulas
        self.settings = {torch.dtype, torch.device, torch.layout, torch.memory_format}
        self.known, self.learnt = {}, {}  # by key; by operator, how many
        self.wanted = {}  # by operator: whether it is such a one
        self.pointwise = {}  # the same: whether its numbers decide no shape
        self.unwanted = {
            aten.add.Tensor,  # may write into its first operand
            aten.convolution.default,
            aten.convolution_backward.default,
            *operators.alike,
            *(set(operators.counts.counting) - {aten.sum.dim_IntList}),  # a sum by HINTS
            *operators.joining,
            *operators.empties,
            *operators.shadows.verdicts,
            *operators.shadows.itself,
            *operators.shadows.compares,
            *operators.shadows.settling,
            *tracer.formulas.writing,
        }
        # Which have kernels of their own for sparse factors alone.
        self.products = aten.mm.default, aten.addmm.default
        self.make = torch.Tensor._make_subclass
        unsafe = getattr(tracer.fake, "_allow_unsafe_data_ptr_access", True)
        name = (
            "_set_warn_deprecated_on_mutable_data_ptr"
            if unsafe
            else "_set_throw_on_mutable_data_ptr"
        )
        self.guard = getattr(torch._C, name, None)

    # -- which operators

    # Results that follow from shapes, types and numbers alone, and that nothing else hears of.
    def is_wanted(self, func):
        torch, tags = self.torch, func.tags
        schema = func._schema
        bad = (
            getattr(torch.Tag, name, None)
            for name in (
                "nondeterministic_seeded",
                "data_dependent_output",
                "dynamic_output_shape",
                "inplace_view",
            )
        )
        return (
            self.guard is not None
            and schema.name.startswith("aten::")
            and not schema.is_mutable
            and not any(tag in tags for tag in bad)
            and func not in self.unwanted
            and (func not in self.operators.own or func in self.products)
            and schema.name not in FFTS
            and "rnn" not in schema.name
            and "lift" not in schema.name
            and "pin" not in schema.name
        )

    # All that the result follows from; None: this one goes the long way.
    def key_of(self, func, args, kwargs):
        wanted = self.wanted.get(func)
        if wanted is None:
            wanted = self.wanted[func] = self.is_wanted(func)
            self.pointwise[func] = self.torch.Tag.pointwise in func.tags
        tracer = self.tracer
        if not wanted or tracer.compiling or tracer.counting or tracer.sums.learning:
            return None
        torch, FakeTensor, shadows = self.torch, self.FakeTensor, self.shadows
        strided, pointwise = torch.strided, self.pointwise[func]
        modules = bool(tracer.modules)
        key = [func, modules, torch.get_default_dtype(), torch.is_inference_mode_enabled()]
        first, unknown = None, False  # a tensor whose values are not known
        for value in args:
            kind = type(value)
            if kind is FakeTensor:
                if value.layout is not strided or value.constant is not None:
                    return None
                if not HINTS.isdisjoint(value.__dict__):
                    return None
                key += (
                    value.shape,
                    value.stride(),
                    value.storage_offset(),
                    value.dtype,
                    value.fake_device,
                    value.is_neg(),
                )
                unknown = unknown or id(value) not in shadows
                first = value if first is None else first
            elif kind is float and pointwise:
                key.append(float)
            elif kind in PLAIN:
                key += (kind, value)
            elif kind is list or kind is tuple:
                if not PLAIN.issuperset(map(type, value)):
                    return None
                key += (kind, tuple(map(type, value)), tuple(value))
            elif kind in self.settings:
                key.append(value)
            else:
                return None
        for name, value in kwargs.items():
            kind = type(value)
            if kind not in PLAIN and kind not in self.settings:
                return None
            key += (name, kind, value)
        if not unknown or not modules and tracer.is_input(first):
            return None
        if func in self.formulas.of_logits and self.formulas.of_a_loss():
            return None
        device = kwargs.get("device")
        if device is not None and torch.device(device).type == "cpu":
            return None
        return tuple(key)

    # -- the first time

    def learn(self, key, mode, func, args, kwargs, tensors, device):
        fake, before = self.tracer.fake, self.tracer.fake.cache_enabled
        listener = Listener.of(self.file)
        if listener is None:
            return self.operators.run(mode, func, args, kwargs, tensors, device, True)
        try:
            fake.cache_enabled = False  # it is asked once
            with listener:
                out = self.operators.run(mode, func, args, kwargs, tensors, device, True)
        finally:
            fake.cache_enabled = before
        if self.learnt.get(func, 0) >= self.MOST_OF_ONE or len(self.known) >= self.MOST:
            return out
        self.learnt[func] = self.learnt.get(func, 0) + 1
        self.known[key] = (
            None if listener.more or self.tracer.kind else self.done(func, args, out, listener.said)
        )
        return out

    # Form, results and steps; None where it did something else, too.
    def done(self, func, args, out, said):
        several = isinstance(out, (tuple, list))
        outs = out if several else [out]
        if several and type(out) not in (tuple, list):
            return None
        results = [None if value is None else self.result(args, value) for value in outs]
        if () in results:
            return None
        steps = self.steps(func, outs, said)
        if steps is None or not self.makes(results, args, outs):
            return None
        return type(out) if several else None, results, steps

    # How to make one: of which argument it is a view, where it lies, its attributes. (): no way.
    def result(self, args, value):
        fields = None if type(value) is not self.FakeTensor else value.__dict__
        if (
            fields is None
            or value.layout is not self.torch.strided
            or value.dtype.is_complex
            or value.dtype == self.torch.bool
            or value.requires_grad
            or any(value is argument for argument in args)
            or id(value) in self.shadows
            or any(name.startswith("_cufit") for name in fields)
            or fields.get("constant") is not None
            or fields.get("real_tensor") is not None
        ):
            return ()
        storage = value.untyped_storage()
        of = next(
            (
                place
                for place, argument in enumerate(args)
                if isinstance(argument, self.FakeTensor)
                and argument.untyped_storage()._cdata == storage._cdata
            ),
            None,
        )
        lies = tuple(value.shape), value.stride(), value.storage_offset()
        return of, lies, value.dtype, storage.nbytes(), value.fake_device, dict(fields)

    def steps(self, func, outs, said):
        numbers = {}
        for place, value in enumerate(outs):
            if isinstance(value, self.FakeTensor):
                number = self.tracer.storages.get(value.untyped_storage())
                numbers.setdefault(number, place)
        module = self.tracer.modules[-1] if self.tracer.modules else ""
        steps, slots = [], {}
        for kind, *step in said:
            if kind == FREE:
                steps.append((FREE, slots[step[0]], None, None))
                continue
            op, of_module = self.file.places[step[-2] if kind == TAKE else step[0]][:2]
            if of_module not in ("", module):
                return None
            own = of_module != ""
            if kind == TAKE and step[2] in numbers:
                steps.append((RESULT, numbers[step[2]], op, own))
            elif kind == TAKE:
                slots[step[2]] = len(slots)
                steps.append((TAKE, step[0], op, own))
            elif func._schema.name in MATMULS:  # follows settings that a program may change
                steps.append((PRODUCT, None, op, own))
            else:
                steps.append((CALL, step[1], op, own))
        return steps

    # Whether what is made this way is like what the operator made.
    def makes(self, results, args, outs):
        keys = self.torch._C._dispatch_key_set
        try:
            for result, value in zip(results, outs):
                made = result and self.made(result, args)
                if result and (
                    made.shape != value.shape
                    or made.stride() != value.stride()
                    or made.storage_offset() != value.storage_offset()
                    or made.dtype != value.dtype
                    or made.untyped_storage().nbytes() != result[3]
                    or made.is_neg() != value.is_neg()
                    or keys(made) != keys(value)
                ):
                    return False
            return True
        except Exception:  # a torch that makes them otherwise
            return False

    # -- from then on

    def made(self, result, args):
        torch = self.torch
        of, (shape, stride, offset), dtype, _, device, fields = result
        if of is None:
            plain = torch.empty_strided(shape, stride, dtype=dtype, device="meta")
        else:
            plain = torch.empty(0, dtype=dtype, device="meta")
            plain.set_(args[of].untyped_storage(), offset, shape, stride)
        out = self.make(
            self.FakeTensor, plain, False, dispatch_device=True, device_for_backend_keys=device
        )
        self.guard(out)
        out.__dict__.update(fields)
        return out

    def again(self, known, func, args):
        form, results, steps = known
        outs = [result and self.made(result, args) for result in results]
        if steps:
            self.tell(steps, func, args, outs)
        return outs[0] if form is None else form(outs)

    def tell(self, steps, func, args, outs):
        tracer, file = self.tracer, self.file
        module, source, phase = (
            tracer.modules[-1] if tracer.modules else "",
            tracer.source(),
            tracer.phase,
        )
        taken = []
        for kind, what, op, own in steps:
            if kind == FREE:
                file.free(taken[what])
                continue
            if kind == PRODUCT:
                tell_call(tracer, func, args, outs[0])
                continue
            site = file.site(op, module if own else "", source, phase)
            if kind == RESULT:
                tracer.tell_storage(outs[what].untyped_storage(), site)
            elif kind == TAKE:
                taken.append(file.alloc(what, site))
            else:
                file.call(site, what)
