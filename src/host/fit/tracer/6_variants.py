# ---- plans ------------------------------------------------------------------------------------------------------------------

# With `--plan`: tells what could be switched on in the program, adds one step over two micro-batches to the trace, and for the
# traces of plans switches on what CUFIT_FIT_VARIANT names: "plan,bf16,fused". src/commands/fit/fit_plans.h says what is told.
def patch_variants(tracer):
    names = [name for name in (tracer.wanted["VARIANT"] or "").split(",") if name]
    if not names:
        return
    tracer.variant = variant = Variant(tracer, [name for name in names if name != "plan"])
    torch = tracer.torch
    import functools
    from torch.nn.modules import module as hooks
    Optimizer = torch.optim.Optimizer

    hooks.register_module_forward_pre_hook(lambda module, args: variant.before_forward(module))
    real_backward = torch.autograd.backward

    def backward(*args, **kwargs):
        variant.before_backward()
        return real_backward(*args, **kwargs)

    torch.autograd.backward = backward
    real_hook = Optimizer.profile_hook_step

    def profile_hook_step(function):
        inner = real_hook(function)

        @functools.wraps(inner)
        def step(self, *args, **kwargs):
            return variant.step(self, inner, args, kwargs)

        return step

    Optimizer.profile_hook_step = staticmethod(profile_hook_step)
    real_init, real_zero, real_module_zero = Optimizer.__init__, Optimizer.zero_grad, torch.nn.Module.zero_grad

    def init(self, params, defaults, *args, **kwargs):
        variant.set_form(defaults)
        real_init(self, params, defaults, *args, **kwargs)
        variant.learn_optimizer(self, tracer.source())

    # Between the micro-batches of one step gradients stay.
    def zero_grad(self, *args, **kwargs):
        if id(self) not in variant.skipped:
            real_zero(self, *args, **kwargs)

    def module_zero_grad(self, *args, **kwargs):
        if not variant.skipped:
            real_module_zero(self, *args, **kwargs)

    Optimizer.__init__, Optimizer.zero_grad, torch.nn.Module.zero_grad = init, zero_grad, module_zero_grad
    if "8bit" in variant.names:
        torch.optim.Adam.step = torch.optim.AdamW.step = eight_bit_step(tracer)
    loader = torch.utils.data.dataloader._BaseDataLoaderIter
    real_next = loader.__next__

    def following(self):
        variant.fetched += 1
        return real_next(self)

    loader.__next__ = following
    for name in ("bf16", "fp16"):
        if name in variant.names:  # what Accelerator and the Trainer read
            os.environ["ACCELERATE_MIXED_PRECISION"] = name


class Variant:
    def __init__(self, tracer, names):
        self.tracer, self.torch = tracer, tracer.torch
        self.names = names
        self.roots = {}
        self.skipped = set()  # optimizers that let a micro-batch pass
        self.accumulating = self.accumulated = False
        self.fetched = self.backwards = 0
        self.autocast = None  # entered here
        self.facts = {"variant": ",".join(names), "autocast": "", "checkpointing": "", "checkpointing_at": "", "framework": "", "precision": "",
                      "optimizer": "", "optimizer_form": "", "optimizer_can": "", "optimizer_at": "", "forward_at": "", "micro_batches": 1}

    # -- the model

    def before_forward(self, module):
        torch, tracer = self.torch, self.tracer
        if tracer.phase == BACKWARD:
            self.facts["checkpointing"] = "on"
            return
        if not module.training or not torch.is_grad_enabled():
            return
        if self.autocast is None and torch.is_autocast_enabled("cuda"):
            self.facts["autocast"] = str(torch.get_autocast_dtype("cuda"))[6:]
        if len(tracer.modules) != 1 or next(module.parameters(), None) is None:
            return
        if id(module) not in self.roots:
            self.roots[id(module)] = module
            self.learn_root(module)
        dtype = torch.bfloat16 if "bf16" in self.names else torch.float16 if "fp16" in self.names else None
        # accelerate has wrapped the model's forward by itself. Elsewhere forward and loss are under autocast, backward is not.
        if dtype is not None and self.autocast is None and "_original_forward" not in vars(module):
            self.autocast = torch.autocast("cuda", dtype=dtype)
            self.autocast.__enter__()

    def before_backward(self):
        if self.tracer.phase == BACKWARD:  # of a part that is computed again
            return
        if self.autocast is not None:
            self.autocast.__exit__(None, None, None)
            self.autocast = None
        self.backwards += 1
        if self.skipped and any(p.grad is not None for root in self.roots.values() for p in root.parameters()):
            self.accumulated = True

    def learn_root(self, root):
        sizes = {}
        for parameter in root.parameters():
            sizes[parameter.dtype] = sizes.get(parameter.dtype, 0) + parameter.numel()
        if sum(sizes.values()) <= sum(p.numel() for other in self.roots.values() if other is not root for p in other.parameters()):
            return  # of several, the largest is the one that is spoken of
        self.facts["precision"] = str(max(sizes, key=sizes.get))[6:]
        self.facts["forward_at"] = self.tracer.source()
        kind, at, switch = self.way_of_checkpointing(root)
        self.facts["checkpointing_at"] = at
        if self.facts["checkpointing"] != "on":
            self.facts["checkpointing"] = kind
        if kind and "checkpointing" in self.names:
            switch()

    def way_of_checkpointing(self, root):
        for name, module in root.named_modules():
            if getattr(module, "is_gradient_checkpointing", False) is True:
                return "on", name, None
            if getattr(module, "supports_gradient_checkpointing", False) is True and hasattr(module, "gradient_checkpointing_enable"):
                return "transformers", name, lambda: module.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
            if hasattr(module, "set_grad_checkpointing"):
                return "timm", name, lambda: module.set_grad_checkpointing(True)
        import functools
        from torch.utils.checkpoint import checkpoint
        lists = self.repeated_blocks(root, "")

        def switch():
            for _, blocks in lists:
                for block in blocks:
                    block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)

        return "blocks" if lists else "", " ".join(name for name, _ in lists), switch

    # Lists of modules of one kind that have modules of their own: layers of a transformer, blocks of a ResNet.
    def repeated_blocks(self, module, path):
        nn = self.torch.nn
        children = list(module.named_children())
        if isinstance(module, (nn.ModuleList, nn.Sequential)) and len(children) > 1 and len({type(child) for _, child in children}) == 1:
            if all(next(child.children(), None) is not None for _, child in children):
                return [(path, [child for _, child in children])]
        found = []
        for name, child in children:
            found += self.repeated_blocks(child, path + "." + name if path else name)
        return found

    # -- the optimizer

    def set_form(self, defaults):
        if "fused" in self.names and "fused" in defaults:
            defaults.update(fused=True, foreach=False)
        elif "foreach_off" in self.names and "foreach" in defaults:
            defaults["foreach"] = False

    def learn_optimizer(self, optimizer, source):
        if self.facts["optimizer"]:
            return
        kind, first = type(optimizer), optimizer.defaults
        own = kind.__module__.startswith("torch.optim")
        form = "fused" if first.get("fused") else "loop" if first.get("foreach") is False else "foreach" if "foreach" in first else "own"
        can = ["fused"] if own and "fused" in first else ["foreach_off"] if own and "foreach" in first else []
        if own and kind.__name__ in ("Adam", "AdamW") and not first.get("amsgrad"):
            can.append("8bit")
        self.facts.update(optimizer=kind.__name__, optimizer_form=form, optimizer_can=" ".join(can), optimizer_at=source)

    def step(self, optimizer, inner, args, kwargs):
        if not self.accumulating or id(optimizer) in self.skipped:
            return inner(optimizer, *args, **kwargs)
        closure = kwargs.get("closure") or (args[0] if args and callable(args[0]) else None)
        out = None
        if closure is not None:
            with self.torch.enable_grad():
                out = closure()
        self.skipped.add(id(optimizer))
        return out

    # -- steps

    # True where the trace goes on although the steps that were wanted are over.
    def step_ends(self):
        tracer = self.tracer
        if tracer.steps == 1:
            self.facts["framework"] = self.framework()
        if tracer.steps == 2:
            count = self.backwards // max(1, len(tracer.first_round))
            self.facts["micro_batches"] = max(1, min(count, self.fetched) if self.fetched else count)
        self.fetched = self.backwards = 0
        tracer.counting = tracer.steps == 1
        if tracer.steps == tracer.wanted["STEPS"]:
            for key, value in self.facts.items():
                tracer.file.fact(key, value)
            tracer.file.mark(MICRO_BATCH)
            self.accumulating = True
            return True
        if tracer.steps > tracer.wanted["STEPS"]:
            tracer.file.fact("accumulated", int(self.accumulated))
        return False

    def framework(self):
        frame = sys._getframe(1)
        found = set()
        while frame is not None:
            parts = frame.f_code.co_filename.replace(os.sep, "/").split("/")
            if parts[-2:] == ["transformers", "trainer.py"]:
                found.add("trainer")
            for part, name in (("lightning", "lightning"), ("pytorch_lightning", "lightning"), ("accelerate", "accelerate")):
                if part in parts[:-1]:
                    found.add(name)
            frame = frame.f_back
        return next((name for name in ("trainer", "lightning", "accelerate") if name in found), "")


# As AdamW8bit of bitsandbytes: of a parameter of 4,096 elements and more two states of a byte per element, and for each 256 of
# these a largest value in fp32; nothing else is made. The Trainer keeps states of embeddings in fp32.
def eight_bit_step(tracer):
    torch = tracer.torch
    tables = []

    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        whole = set()
        if tracer.variant.framework() == "trainer":
            whole = {id(module.weight) for module in list(tracer.names) if isinstance(module, torch.nn.Embedding)}
        with torch.no_grad():
            for parameter in (p for group in self.param_groups for p in group["params"] if p.grad is not None):
                state = self.state[parameter]
                small = parameter.numel() < 4096 or id(parameter) in whole
                if not state:
                    state["step"] = 0
                    for name in ("state1", "state2"):
                        state[name] = torch.zeros_like(parameter, dtype=torch.float32 if small else torch.uint8)
                    if not small:
                        if not tables:
                            tables.extend(torch.zeros(256, device="cuda") for _ in range(2))
                        for name in ("absmax1", "absmax2"):
                            state[name] = torch.zeros((parameter.numel() + 255) // 256, device="cuda")
                if tracer.counting:
                    each = 3 * parameter.element_size() + (16 if small else 4)
                    tell_moved(tracer, "adamw8bit", parameter.numel() * each, 1)
        return loss

    return step
