# ---- the tracer -------------------------------------------------------------------------------------------------------------

class Tracer:
    SHADOW_ELEMENTS = 1 << 20
    SHADOW_FLOATS = 1 << 16
    MOST_COMPARED = 200  # reads of one comparison in a step, after which it is answered the other way
    MOST_AGAIN, SECONDS_AGAIN = 20, 60  # steps of some optimizers while another has not stepped
    FAKE_EMPTY_ELEMENTS = 4096  # uninitialised CPU tensors of this size and more hold nothing worth keeping

    def __init__(self, torch, wanted):
        self.torch = torch
        self.version = tuple(int(part) for part in torch.__version__.split(".")[:2])
        self.wanted = wanted
        self.gpu_name, self.capability, self.total = wanted["GPU"]
        self.file = EventFile(wanted["OUT"])
        self.draws = Draws(torch)
        self.phase = SETUP
        self.steps = 0
        self.enough = wanted["STEPS"]  # an answer can rest on these
        self.began = self.until = None  # the first step; when no more are added
        self.given = {}  # by module, place and dimensions: the largest shape of the step under way
        self.shapes = {}  # the same, those of all steps
        self.shown = 0  # how deep the module stands whose arguments were taken
        self.modules = []  # names of those whose forward runs
        self.outermost = weakref.WeakSet()  # modules that no other calls
        self.told = weakref.WeakSet()  # whether to train
        self.names = weakref.WeakKeyDictionary()  # of modules whose parameters were told
        self.inputs = set()  # numbers of the storages that hold batches
        self.weights = set()  # the same of parameters
        self.allocated = self.peak = 0
        self.loaders = 0
        self.made_up = False  # an array has come out of a tensor without contents
        self.batch_found = None  # of the DataLoader made first, then of the one that trains
        self.unreached, self.trained_with = {}, None  # DataLoaders, by the batch size and the line that made them
        self.optimizers = 0
        self.made = weakref.WeakSet()  # optimizers
        self.first_round, self.round, self.stepped = [], None, set()
        self.by_hand = None  # where PyTorch has no optimizer: weights have gradients (False), and were written to since (True)
        self.again = 0  # steps in the first round of optimizers that had stepped
        self.by_function = False
        self.variant = None
        self.compiling = False  # within torch.compile, which allocates nothing
        self.capturing = False  # into a CUDA graph
        self.compiled = False  # it has compiled something
        self.counting = False  # what the operators of a step move
        self.valid = False  # within a check that raises where a value is not what it has to be
        self.dropout_state = None
        self.adds_bias = False  # inside a linear layer
        self.sources = {}
        self.cudnn = None
        self.sequences = None  # shortest and longest of the batches
        self.after = AfterSteps(self)
        self.repeats = Repeats(self)
        self.dropped = set()
        self.compared = {}  # by line: how often in this step a value that nobody has was compared
        self.evaluated = False  # a model that does not train ran after training began

    # The user's own line: the innermost frame that is in no library.
    def source(self):
        frame = sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            own = self.sources.get(name)
            if own is None:
                own = self.sources[name] = users_file(name)
            if own:
                return "%s:%d" % (own, frame.f_lineno)
            frame = frame.f_back
        return ""

    def install(self):
        torch = self.torch
        import torch._subclasses.fake_tensor as fake_tensor
        from torch.utils.weak import WeakIdKeyDictionary

        import warnings

        warnings.filterwarnings("ignore", "Accessing the data pointer of FakeTensor")  # copy.deepcopy of a parameter does
        pretend_guard(torch)
        torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(..., device="cuda") goes through the mode
        fake_tensor.init_gpu_context = fake_tensor.init_cuda_context = lambda *args: None
        fake_tensor.FakeTensorMode.avoid_device_init = property(lambda self: True)
        fake_tensor.FakeTensorMode.__deepcopy__ = lambda self, memo: self  # a copied parameter stays in this mode
        self.FakeTensor = fake_tensor.FakeTensor
        # transformers looks here whether somebody traces, and then takes other ways than it takes on a GPU.
        torch._subclasses.FakeTensor = type("FakeTensor", (fake_tensor.FakeTensor,), {})
        self.fake = fake_tensor.FakeTensorMode(allow_non_fake_inputs=True, allow_fallback_kernels=False)
        self.DataDependent = fake_tensor.DataDependentOutputException
        self.DynamicShape = fake_tensor.DynamicOutputShapeException
        self.Unsupported = fake_tensor.UnsupportedOperatorException
        self.storages = WeakIdKeyDictionary()
        self.shadows = WeakIdKeyDictionary()
        self.sums = GradientSums(self)
        self.formulas = Formulas(self)
        built = torch.version.cuda
        pretend_cuda(self)
        patch_modules(self)
        patch_lazy(self)
        patch_distributions(self)
        patch_optimizers(self)
        patch_loaders(self)
        patch_after_steps(self)
        patch_inference_mode(self)
        patch_linear(self)
        patch_one_hot(self)
        leave_scripts_unfused(torch)
        patch_attention(self)
        patch_recurrent(self)
        patch_ctc(self)
        patch_compile(self)
        patch_saving(self)
        patch_distributed(self)
        patch_older_names(self)
        patch_graphs(self)
        patch_subclasses(self)
        patch_addresses(self)
        patch_triton(self)
        patch_variants(self)
        for key, value in (("torch", torch.__version__), ("python", sys.version.split()[0]), ("cuda", built or "none: built for the CPU"),
                           ("steps", self.wanted["STEPS"]), ("method", "fake cuda"),
                           ("alloc_conf", os.environ.get("PYTORCH_ALLOC_CONF", os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""))),
                           ("cublas_workspace_config", os.environ.get("CUBLAS_WORKSPACE_CONFIG", ""))):
            self.file.fact(key, value)
        if self.wanted["BATCH"]:
            self.file.fact("batch", self.wanted["BATCH"])
        self.file.before_end += self.tell_settings, self.tell_lengths
        self.mode = make_mode(self)
        self.mode.__enter__()
        patch_threads(self)

    # -- allocations

    def tell(self, value, site):
        torch = self.torch
        if isinstance(value, torch.Tensor):
            if isinstance(value, self.FakeTensor) and value.fake_device.type == "cuda":
                if value.layout is torch.sparse_coo:
                    self.tell((value._indices(), value._values()), site)
                else:
                    self.tell_storage(value.untyped_storage(), site)
        elif isinstance(value, (list, tuple)):
            for item in value:
                self.tell(item, site)

    def tell_storage(self, storage, site):
        if storage in self.storages or self.sums.learning:
            return
        size = int(storage.nbytes())
        if size == 0:
            return
        if not self.file.on_disk and not self.file.closed and (follows() or not self.file.begin()):
            os._exit(0)  # another process of this program is traced; its launcher waits for that one
        number = self.file.alloc(size, site)
        self.storages[storage] = number
        self.allocated += size
        self.peak = max(self.peak, self.allocated)
        weakref.finalize(storage, self.released, number, size).atexit = False

    # Bytes of the storages that are there, by their numbers from `first` up to `end`.
    def there(self, first, end):
        return {number: storage.nbytes() for storage, number in sorted(self.storages.items(), key=lambda entry: entry[1])
                if first <= number < end and number not in self.dropped}

    # Freed in the trace, whatever the program holds.
    def drop(self, number):
        self.dropped.add(number)
        self.file.free(number)

    def released(self, number, size):
        self.allocated -= size
        if number not in self.dropped:
            self.file.free(number)

    def categorise(self, tensor, category):
        if isinstance(tensor, self.FakeTensor) and tensor.layout is self.torch.sparse_coo:
            self.categorise(tensor._values(), category)
        elif isinstance(tensor, self.FakeTensor) and tensor.fake_device.type == "cuda":
            number = self.storages.get(tensor.untyped_storage())
            if number is not None:
                self.file.category(number, category)
                if category in (INPUT, PARAMETER):
                    (self.inputs if category == INPUT else self.weights).add(number)

    def is_input(self, tensor):
        strided = isinstance(tensor, self.FakeTensor) and tensor.layout is self.torch.strided
        return strided and self.storages.get(tensor.untyped_storage()) in self.inputs

    def convolution(self, way, dtype, numbers):
        if not self.wanted["CUDNN"]:
            return
        if self.cudnn is None:
            import json
            setting = self.torch.backends.cudnn
            self.cudnn = CudnnAnswers(json.loads(self.wanted["CUDNN"]), asked_tf32(setting), setting.deterministic, setting.benchmark)
            self.file.before_end.append(lambda: self.steps and self.cudnn.write(self.file))
        kind = str(dtype).partition(".")[2]
        if kind in Cudnn.TYPES and self.torch.backends.cudnn.enabled:
            self.cudnn.saw(way, kind, numbers)

    # A batch of a DataLoader with its sequences at the length that was asked for: rows of whole numbers (tokens, masks, labels)
    # of one common length, repeated or cut. Tells the length that it had, and whether it varied.
    def lengths(self, place):
        torch = self.torch
        wanted = self.wanted["SEQ"]

        def each(value, do):
            if isinstance(value, torch.Tensor):
                whole = value.dim() == 2 and value.shape[1] > 1 and not value.is_floating_point() and not value.is_complex()
                return do(value) if whole else value
            if hasattr(value, "keys") and hasattr(value, "__setitem__"):
                for key in list(value.keys()):
                    value[key] = each(value[key], do)
                return value
            if type(value) in (list, tuple):
                return type(value)(each(item, do) for item in value)
            return value

        def resized(batch):
            seen = []
            each(batch, lambda rows: (seen.append(rows.shape[1]), rows)[1])
            if not seen:
                return batch
            length = max(set(seen), key=seen.count)
            if self.sequences is None:
                self.sequences = (length, length)
                self.file.fact("seq_found", length)
                self.file.fact("seq_from", place)
            elif not wanted:
                self.sequences = min(self.sequences[0], length), max(self.sequences[1], length)
            if wanted and length != wanted:
                at = torch.arange(wanted) % length
                batch = each(batch, lambda rows: rows[:, at] if rows.shape[1] == length else rows)
            return batch

        return resized

    # -- steps

    def step_begins(self):
        if self.began is None:
            self.began = time.monotonic()
        if self.phase == SETUP:
            self.file.mark(STEP_BEGINS)
            self.phase = FORWARD

    # A training step is over when each optimizer that takes part has stepped; with several (a GAN), which take part shows when
    # one steps for the second time, or some more times where another is there that has not stepped yet.
    def optimizer_steps(self, number):
        self.by_hand = None
        if self.after.running:
            raise BlockEnds("it trains")
        if self.by_function:
            return
        if self.optimizers == 1:
            self.step_ends()
            return
        if self.round is None and number not in self.first_round:
            self.first_round.append(number)
            return
        if self.round is None:
            self.again += 1
            if self.one_never_stepped() and self.again < self.MOST_AGAIN and time.monotonic() < (self.began or 0) + self.SECONDS_AGAIN:
                return
            self.round = set(self.first_round)
            if len(self.round) > 1:
                self.stepped.add(number)
            return self.step_ends()
        self.stepped.add(number)
        if self.stepped >= self.round:
            self.stepped.clear()
            self.step_ends()

    # A program may step itself (fastai does): that is over where the next forward begins.
    def written(self, tensor):
        strided = isinstance(tensor, self.FakeTensor) and tensor.layout is self.torch.strided
        if strided and self.storages.get(tensor.untyped_storage()) in self.weights:
            self.by_hand = True

    # Whether what runs now is no training: no gradients are wanted, or the models that could train do not.
    def evaluates(self):
        models = [module for module in list(self.outermost) + list(self.told) if any(p.requires_grad for p in module.parameters())]
        return not self.torch.is_grad_enabled() or bool(models) and not any(module.training for module in models)

    # One that only hands on to another (SAM) has the other's parameters.
    def one_never_stepped(self):
        of = lambda optimizer: {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        made = list(self.made)
        stepped = set().union(*(of(optimizer) for optimizer in made if id(optimizer) in self.first_round))
        return any(id(optimizer) not in self.first_round and not of(optimizer) <= stepped for optimizer in made)

    def step_ends(self):
        self.file.mark(STEP_ENDS)
        self.compared.clear()
        self.steps += 1
        if self.steps == 1:
            self.tell_training_loader()
        self.keep_shapes()
        if self.steps == self.wanted["STEPS"] and self.goes_on():
            self.wanted["STEPS"] += 1
        more = self.variant is not None and self.variant.step_ends()
        if self.steps >= self.wanted["STEPS"] and not more:
            # zero_grad may stand behind the step; the steps before have shown it.
            if not self.after.begin():
                self.finish(SEEN)
            return
        self.file.mark(STEP_BEGINS)
        self.phase = FORWARD

    # -- batches of different sizes

    # Of the outermost module that is given tensors.
    def shows(self, module, values):
        if self.shown or not module.training:
            return
        for place, value in enumerate(values):
            for tensor in tensors_within(self.torch, value):
                self.shown = len(self.modules) + 1
                key, shape = (id(module), place, tensor.dim()), tuple(tensor.shape)
                if elements(shape) >= elements(self.given.get(key, (0,))):
                    self.given[key] = shape

    def keep_shapes(self):
        for key, shape in self.given.items():
            self.shapes.setdefault(key, set()).add(shape)
        self.given = {}

    # Where the steps were not of one size, so that more of them may show a larger one: up to a number and a time. Whether sizes
    # differ decides, never how much, so that the program is as long at every batch size.
    def goes_on(self):
        if self.steps >= self.wanted["MOST_STEPS"] or all(len(shapes) == 1 for shapes in self.shapes.values()):
            return False
        now = time.monotonic()
        took = now - self.began
        if self.until is None:
            self.until = now + 3 * took + 20
            if self.wanted["DEADLINE"]:
                self.until = min(self.until, float(self.wanted["DEADLINE"]) - 2 * took)
        return now < self.until

    def tell_lengths(self):
        vary = [shapes for shapes in self.shapes.values() if len(shapes) > 1]
        if vary:
            ends = sorted(vary[0], key=elements)
            self.file.note("sizes_vary", ", ".join(" x ".join(map(str, shape)) for shape in (ends[0], ends[-1])), "")
        elif self.sequences and self.sequences[0] != self.sequences[1]:
            self.file.note("assumed", "the sequences of the batches were of %d to %d tokens; --seq N answers for one length" % self.sequences, "")

    # The first DataLoader need not be the one that trains.
    def tell_training_loader(self):
        made = getattr(self.after.training_loader(), "_cufit_made", None)
        self.trained_with = made and made[0]
        if made and made[0] != self.batch_found:
            self.batch_found = made[0]
            self.file.fact("batch_found", made[0])
            self.file.fact("batch_from", "DataLoader %s" % made[1])
            if not self.wanted["BATCH"]:
                self.file.fact("batch", made[0])

    # A program that fails where it would have been stopped long ago has come to its end.
    def ending(self):
        if self.after.began:
            return SEEN
        more = self.variant is not None and self.variant.accumulating
        return ENDED if self.until is not None and self.steps >= self.enough and not more else FAILED

    def tell_settings(self):
        torch = self.torch
        self.file.fact("cudnn_benchmark", int(torch.backends.cudnn.benchmark))
        self.file.fact("allow_tf32", int(asked_tf32(torch.backends.cuda.matmul)))
        self.file.fact("compiled", int(self.compiled))
        if self.wanted["SEQ"] and not self.sequences and not self.by_function:
            self.file.note("assumed", "--seq %d: no DataLoader gave rows of tokens, so their length was left as it is" % self.wanted["SEQ"], "")
        unseen = [made for made in self.unreached.values() if self.trained_with is not None and made[0] > self.trained_with]
        if self.steps and not self.evaluated and not self.by_function and not unseen:
            for line in lines_that_evaluate():
                self.file.note("assumed", "the trace did not come to an evaluation: what that takes is not in the answer, and can be more", line)
        if self.round is not None and self.one_never_stepped():
            self.file.note("assumed", "an optimizer that the program made did not step in the trace: what its steps take is not in the answer, "
                           "and can be more", "")
        for batch, source in unseen:
            self.file.note("assumed", "batches of %d are loaded, too, after the traced steps: what validation takes with them is not in the "
                           "answer, and can be more" % batch, source)

    def finish(self, reason):
        if reason == ENDED and self.steps >= self.wanted["STEPS"]:
            reason = SEEN
        self.after.left = True  # what follows is none of the program's doing
        self.file.end(reason)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0 if reason == SEEN else 1)


# Of the user's files, the first few.
def lines_that_evaluate():
    found = []
    for module in list(sys.modules.values())[:5000]:
        file = getattr(module, "__file__", None) or (sys.argv[0] if getattr(module, "__name__", "") == "__main__" else None)
        own = users_file(file) if isinstance(file, str) and file.endswith(".py") else ""
        if own and len(found) < 4:
            try:
                with open(file, encoding="utf-8", errors="replace") as text:
                    lines = text.readlines(1 << 20)
            except OSError:
                continue
            found += ["%s:%d" % (own, number) for number, line in enumerate(lines, 1) if ".eval()" in line.partition("#")[0]]
    return found[:4]


def tensors_within(torch, value, deep=8):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, collections.abc.Mapping):  # collections.UserDict, too
        value = list(value.values())
    if isinstance(value, (list, tuple)) and deep:
        return [tensor for item in value for tensor in tensors_within(torch, item, deep - 1)]
    return []


def elements(shape):
    count = 1
    for size in shape:
        count *= size
    return count


# torch 2.9 and later refuse the older question where the program has used the newer setting.
def asked_tf32(backend):
    try:
        return backend.allow_tf32
    except RuntimeError:
        return getattr(backend, "fp32_precision", "") == "tf32"
