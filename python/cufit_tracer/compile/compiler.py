# SPDX-License-Identifier: Apache-2.0
"""torch.compile, without the compilation of its kernels."""

import functools
import os
import sys
import types

from .inductor import pretend_inductor
from .listening import Listening, said
from ..user_files import OWN, add_library


# torch.compile itself runs, over the tensors without contents: dynamo, the partitioner that chooses
# what backward gets, inductor's fusion and code. Only its kernels are not compiled. The Python
# around them that inductor writes is what asks the allocator on a GPU; it runs here under the mode
# of the tracer, with kernels that do nothing. What cannot be compiled here runs as it is, with a
# note; where compiled code fails as it runs, the program starts again without torch.compile, as
# nothing that was told can be taken back.
NOT_FOLLOWED = "torch.compile is not followed; the model was traced as it runs without"


def patch_compile(tracer):
    torch = tracer.torch
    compiler = Compiler(tracer)
    real = torch.compile

    def compiled(model=None, *args, **kwargs):
        if model is None:
            return lambda function: compiled(function, *args, **kwargs)
        return compiler.compiled(real, model, args, kwargs)

    torch.compile = compiled
    torch.nn.Module.compile = lambda self, *args, **kwargs: compiler.compile_module(
        self, compiled, args, kwargs
    )


def never_fake(value):
    return False


class Compiler:
    WITHOUT = (
        "CUFIT_FIT_WITHOUT_COMPILE"  # why not, in the environment of a program that starts again
    )

    def __init__(self, tracer):
        self.tracer, self.torch = tracer, tracer.torch
        self.ready = False
        self.tried = set()  # sources of kernels
        self.why_not = os.environ.get(self.WITHOUT, "")
        self.folder = os.getcwd()
        self.environment = dict(os.environ)
        self.told = False
        if self.why_not:
            self.tell_why_not()

    def note(self, why):
        self.tracer.file.note(
            "assumed",
            "%s (%s)" % (NOT_FOLLOWED, why[:300]) if why else NOT_FOLLOWED,
            self.tracer.source(),
        )

    # -- what the program calls

    def compiled(self, real, model, args, kwargs):
        if kwargs.get("disable"):
            return model
        if isinstance(model, types.FunctionType):
            return self.when_called(real, model, args, kwargs)
        return self.at_once(real, model, args, kwargs)

    # Libraries decorate functions that no program need call.
    def when_called(self, real, function, args, kwargs):
        made = []

        @functools.wraps(function)
        def first(*given, **named):
            if not made:
                made.append(self.at_once(real, function, args, kwargs))
            return made[0](*given, **named)

        first._torchdynamo_inline = function  # what dynamo finds where it looks into this one
        return first

    def at_once(self, real, model, args, kwargs):
        if not self.prepare():
            self.tell_why_not()
            return model
        try:
            out = real(model, *args, **self.options(kwargs))
        except Exception as error:
            self.note(said(error))
            return model
        return out if isinstance(out, self.torch.nn.Module) else self.entered(out, model)

    def tell_why_not(self):
        self.tracer.compiled = True
        if not self.told:
            self.told = True
            self.note(self.why_not)

    def compile_module(self, module, compiled, args, kwargs):
        call = compiled(module._call_impl, *args, **kwargs)
        if call != module._call_impl:
            module._compiled_call_impl = call

    # CUDA graphs and the search for the fastest kernels are left out.
    def options(self, kwargs):
        torch, mode, options = self.torch, kwargs.get("mode"), dict(kwargs.get("options") or {})
        if kwargs.get("backend", "inductor") != "inductor" or not (
            mode and mode != "default" or options
        ):
            return kwargs
        if mode:
            import torch._inductor

            options = dict(torch._inductor.list_mode_options(mode, kwargs.get("dynamic")))
        left_out = [
            name
            for name in options
            if options[name]
            and ("cudagraphs" in name or "autotune" in name or "coordinate_descent" in name)
        ]
        if left_out:
            said = "what CUDA graphs keep and the search for kernels takes is not counted"
            said = "torch.compile: %s left out; %s" % (", ".join(sorted(left_out)), said)
            self.tracer.file.note("assumed", said, self.tracer.source())
            if any("cudagraphs" in name for name in left_out):
                self.tracer.file.fact("graphs_left_out", 1)
        out = {name: value for name, value in kwargs.items() if name not in ("mode", "options")}
        options = {name: value for name, value in options.items() if name not in left_out}
        return dict(out, options=options) if options else out

    # Around each call of something compiled: dynamo would look into the hooks of the tracer.
    def entered(self, function, model):
        torch, tracer = self.torch, self.tracer
        from torch.nn.modules import module as hooks

        owner = model if isinstance(model, torch.nn.Module) else getattr(model, "__self__", None)
        tables = [
            vars(hooks)[name]
            for name in (
                "_global_forward_pre_hooks",
                "_global_forward_hooks",
                "_global_forward_hooks_always_called",
                "_global_forward_hooks_with_kwargs",
                "_global_forward_pre_hooks_with_kwargs",
            )
            if name in vars(hooks)
        ]

        def inside(*args, **kwargs):
            if isinstance(owner, torch.nn.Module):
                tracer.tell_parameters(owner)
            if torch.is_grad_enabled():
                tracer.step_begins()
            library = sys.modules.get("transformers.utils.import_utils")
            if hasattr(library, "is_fake_tensor"):  # it takes other ways where somebody traces
                library.is_fake_tensor = never_fake
            kept = [dict(table) for table in tables]
            shown = tracer.shown
            for table in tables:
                table.clear()
            if isinstance(owner, torch.nn.Module) and torch.is_grad_enabled():
                tracer.shows(owner, (*args, *kwargs.values()))
            try:
                return function(*args, **kwargs)
            finally:
                tracer.shown = shown
                for table, before in zip(tables, kept):
                    table.update(before)

        try:
            return functools.update_wrapper(inside, function)
        except Exception:
            return inside

    # -- where the tracer looks on, and where not

    def listens(self):
        from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

        return any(mode is self.tracer.mode for mode in _get_current_dispatch_mode_stack())

    def on(self):
        return Listening(self, True)

    def off(self):
        return Listening(self, False)

    # -- the program again, without

    def again(self, error):
        sys.stderr.write(
            "cufit: what torch.compile made does not run here (%s); once more without\n"
            % said(error)
        )
        sys.stderr.flush()
        sys.stdout.flush()
        file = self.tracer.file
        with file.lock:
            if file.on_disk:
                file.closed = True
                file.out.close()
                os.unlink(file.path)
        os.chdir(self.folder)
        os.execve(
            sys.executable,
            [sys.executable] + sys.orig_argv[1:],
            dict(self.environment, **{self.WITHOUT: said(error)}),
        )

    # Runs a part of what was compiled; it has no way back.
    def or_again(self, function):
        def run(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            except Exception as error:
                self.again(error)

        return run

    # -- once, before the first

    def prepare(self):
        if self.why_not:
            return False
        if not self.ready:
            try:
                if not hasattr(sys, "orig_argv"):
                    raise RuntimeError("Python before 3.10")
                folder = os.path.join(
                    self.tracer.wanted["SCRATCH"] or os.path.join(OWN, "scratch"), "inductor"
                )
                add_library(folder)
                os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
                os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
                with self.off():
                    pretend_inductor(self)
                self.ready = True
            except Exception as error:
                self.why_not, self.tracer.compiled = said(error), False
                return False
        return True
