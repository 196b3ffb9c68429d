# SPDX-License-Identifier: Apache-2.0
"""What dynamo asks."""

from .listening import listening, said


def follow_dynamo(compiler):
    tracer, torch = compiler.tracer, compiler.torch
    follow_frames(compiler)
    follow_inputs(tracer)
    # The states of a compiled optimizer are made while it is compiled.
    for optimizer in list(vars(torch.optim).values()):
        if isinstance(optimizer, type) and "_init_group" in vars(optimizer):
            optimizer._init_group = listening(compiler, optimizer._init_group)
    mode = type(tracer.mode)
    mode.__torch_dispatch__ = torch._dynamo.disable(mode.__torch_dispatch__)
    follow_modules(compiler)
    from torch import _VF

    for name in ("rnn_relu", "rnn_tanh", "lstm", "gru"):  # dynamo leaves them out, too
        setattr(_VF, name, torch._dynamo.disable(getattr(_VF, name)))
    follow_draws(torch, mode)
    keep_whole(tracer)


def follow_frames(compiler):
    from torch._dynamo import convert_frame, guards

    real_call = convert_frame.CatchErrorsWrapper.__call__

    # A frame that is not compiled runs as it is: dynamo says that with an empty answer.
    def convert(self, frame, *args, **kwargs):
        try:
            with compiler.off():
                return real_call(self, frame, *args, **kwargs)
        except Exception as error:
            compiler.note(said(error))
            empty = getattr(convert_frame, "ConvertFrameReturn", None)
            return empty() if empty is not None else None

    convert_frame.CatchErrorsWrapper.__call__ = convert
    # The guards hold what a tensor is like under the mode that is there when they are asked.
    for owner, name in (
        (guards.CheckFunctionManager, "__init__"),
        (guards, "get_guard_fail_reason_helper"),
    ):
        if hasattr(owner, name):
            setattr(owner, name, listening(compiler, getattr(owner, name)))


# Older dynamo hands the tensors themselves on, where it would be theirs that are fake to it.
def follow_inputs(tracer):
    from torch._dynamo.output_graph import OutputGraph

    real_inputs = OutputGraph.example_inputs

    def foreign(value):
        return isinstance(value, tracer.FakeTensor) and value.fake_mode is tracer.fake

    def inputs(self):
        own = self.fake_mode.from_tensor
        return [own(value) if foreign(value) else value for value in real_inputs(self)]

    OutputGraph.example_inputs = inputs


def follow_modules(compiler):
    from torch._dynamo import eval_frame

    initialize = eval_frame.OptimizedModule._initialize

    def initialized(self):
        initialize(self)
        self.forward = compiler.entered(self.forward, self._orig_mod)

    eval_frame.OptimizedModule._initialize = initialized
    import warnings

    for message in (
        "Using `torch.compile.module.` when there are global hooks",
        "dynamo_pgo force disabled",
        "Accessing the data pointer of FakeTensor",
    ):
        warnings.filterwarnings("ignore", message=message)


# Operators that draw and are computed again: what they keep of the generator is on the CPU.
def follow_draws(torch, mode):
    import torch._prims.rng_prims as draws

    def with_state(mode, state, operator, *args, **kwargs):
        with mode:
            return operator(*args, **kwargs)

    def and_state(mode, operator, *args, **kwargs):
        with mode:
            return torch.cuda.get_rng_state(), operator(*args, **kwargs)

    draws.run_with_rng_state.py_impl(mode)(with_state)
    draws.run_and_save_rng_state.py_impl(mode)(and_state)


# In the graph attention stands as one call, whose kernel is chosen while the graph is taken apart.
def keep_whole(tracer):
    torch = tracer.torch
    torch._dynamo.allow_in_graph(tracer.attention)
    torch._dynamo.allow_in_graph(tracer.linear)
    operator = torch.ops.aten.scaled_dot_product_attention.default
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    operator.py_kernels.pop(key, None)
    operator.py_impl(key)(tracer.attention)
