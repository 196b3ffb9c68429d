

# ---- what dynamo and inductor ask -------------------------------------------------------------------------------------------

def pretend_inductor(compiler):
    tracer, torch = compiler.tracer, compiler.torch
    torch._subclasses.FakeTensor = tracer.FakeTensor
    import torch._dynamo
    import torch._functorch.aot_autograd  # noqa: F401
    import torch._inductor.compile_fx  # noqa: F401
    import torch._inductor.config as config
    import torch._functorch.config as functorch_config

    # Those that were imported before hold what the tracer had put there.
    for name, module in list(sys.modules.items()):
        if name.startswith("torch."):
            held = getattr(module, "__dict__", {}).get("FakeTensor")
            if isinstance(held, type) and held is not tracer.FakeTensor and issubclass(held, tracer.FakeTensor):
                module.FakeTensor = tracer.FakeTensor
    for module, wanted in ((config, {"compile_threads": 1, "fx_graph_cache": False, "force_disable_caches": True, "worker_start_method": "fork"}),
                           (functorch_config, {"enable_autograd_cache": False, "graphsafe_rng_functionalization": False})):
        for name, value in wanted.items():
            if hasattr(module, name):
                setattr(module, name, value)
    pretend_device(tracer)
    pretend_triton(compiler)
    pretend_constants(compiler)
    pretend_formats(tracer)
    pretend_benchmarks(compiler)
    follow_dynamo(compiler)
    follow_generated(compiler)


def follow_dynamo(compiler):
    tracer, torch = compiler.tracer, compiler.torch
    from torch._dynamo import convert_frame, eval_frame, guards

    real_call = convert_frame.CatchErrorsWrapper.__call__

    # A frame that is not compiled runs as it is: dynamo says that with an empty answer.
    def convert(self, frame, *args, **kwargs):
        try:
            with compiler.off():
                return real_call(self, frame, *args, **kwargs)
        except Exception as error:
            compiler.note(said(error))
            return convert_frame.ConvertFrameReturn() if hasattr(convert_frame, "ConvertFrameReturn") else None

    convert_frame.CatchErrorsWrapper.__call__ = convert
    # Older dynamo hands the tensors themselves on, where it would be theirs that are fake to it.
    from torch._dynamo.output_graph import OutputGraph
    real_inputs = OutputGraph.example_inputs

    def inputs(self):
        foreign = lambda value: isinstance(value, tracer.FakeTensor) and value.fake_mode is tracer.fake
        return [self.fake_mode.from_tensor(value) if foreign(value) else value for value in real_inputs(self)]

    OutputGraph.example_inputs = inputs
    # The guards hold what a tensor is like under the mode that is there when they are asked.
    for owner, name in ((guards.CheckFunctionManager, "__init__"), (guards, "get_guard_fail_reason_helper")):
        if hasattr(owner, name):
            setattr(owner, name, listening(compiler, getattr(owner, name)))
    # The states of a compiled optimizer are made while it is compiled.
    for optimizer in list(vars(torch.optim).values()):
        if isinstance(optimizer, type) and "_init_group" in vars(optimizer):
            optimizer._init_group = listening(compiler, optimizer._init_group)
    mode = type(tracer.mode)
    mode.__torch_dispatch__ = torch._dynamo.disable(mode.__torch_dispatch__)
    initialize = eval_frame.OptimizedModule._initialize

    def initialized(self):
        initialize(self)
        self.forward = compiler.entered(self.forward, self._orig_mod)

    eval_frame.OptimizedModule._initialize = initialized
    import warnings
    warnings.filterwarnings("ignore", message="Using `torch.compile.module.` when there are global hooks")
    warnings.filterwarnings("ignore", message="dynamo_pgo force disabled")
    warnings.filterwarnings("ignore", message="Accessing the data pointer of FakeTensor")
    from torch import _VF
    for name in ("rnn_relu", "rnn_tanh", "lstm", "gru"):  # dynamo leaves them out, too
        setattr(_VF, name, torch._dynamo.disable(getattr(_VF, name)))
    # Operators that draw and are computed again: what they keep of the generator is on the CPU.
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
    torch._dynamo.allow_in_graph(tracer.attention)
    torch._dynamo.allow_in_graph(tracer.linear)
    operator, key = torch.ops.aten.scaled_dot_product_attention.default, torch._C.DispatchKey.CompositeImplicitAutograd
    operator.py_kernels.pop(key, None)
    operator.py_impl(key)(tracer.attention)


def listening(compiler, function):
    def run(*args, **kwargs):
        if not compiler.tracer.compiling:
            return function(*args, **kwargs)
        with compiler.on():
            compiler.tracer.compiling = True
            return function(*args, **kwargs)

    return run
