# ---- torch.distributed in one process ---------------------------------------------------------------------------------------

# Of those that torchrun starts the first is traced in every run: two runs of different ones would not be alike.
def follows():
    return "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("LOCAL_RANK", "0") != "0"


# The GPUs that there are: one, but `accelerate launch --num_processes N` starts several processes only where it sees several.
def launched():
    name = sys.argv[0] if getattr(sys, "argv", None) else ""
    if os.path.basename(name) in ("accelerate", "accelerate-launch") or name.endswith("accelerate/commands/launch.py"):
        for word, after in zip(sys.argv, sys.argv[1:] + [""]):
            key, equals, value = word.partition("=")
            if key in ("--num_processes", "--num-processes"):
                value = value if equals else after
                return max(int(value), 1) if value.isdigit() else 1
    return 1


# What PyTorch itself has for tests: a group whose collectives return at once. Of a program that starts several processes the
# first that allocates is traced; alone, a program is a world of one.
def patch_distributed(tracer):
    torch = tracer.torch
    dist = torch.distributed
    if not dist.is_available():
        return
    from torch.distributed import distributed_c10d as c10d

    real_init = c10d.init_process_group
    asked = []

    def init(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, *args, **kwargs):
        from torch.testing._internal.distributed.fake_pg import FakeStore

        world_size = world_size if world_size > 0 else int(os.environ.get("WORLD_SIZE", 1))
        rank = rank if rank >= 0 else int(os.environ.get("RANK", 0))
        asked.append(str(backend or "nccl"))
        if world_size > 1:
            tracer.file.note("several_processes", "process %d of %d; what NCCL takes is not counted" % (rank, world_size), tracer.source())
        else:
            tracer.file.note("assumed", "torch.distributed was traced as one process without NCCL", tracer.source())
        real_init(backend="fake", store=FakeStore(), rank=rank, world_size=world_size)

    def gathered(objects, value, *args, **kwargs):
        if objects is not None:
            objects[:] = [value] * len(objects)

    def alone(first, *args, **kwargs):
        return None

    # Objects travel as bytes, which a tensor without contents has not.
    for name, function in (("init_process_group", init), ("all_gather_object", gathered), ("broadcast_object_list", alone),
                           ("gather_object", lambda value, objects=None, *a, **k: gathered(objects, value)),
                           ("monitored_barrier", lambda *a, **k: None), ("barrier", lambda *a, **k: None),
                           ("get_backend", lambda *a, **k: asked[-1].split(":")[-1] if asked else "nccl")):
        for module in (c10d, dist):
            setattr(module, name, function)
    patch_parallel(tracer)
    if "torch.distributed.fsdp" in sys.modules:
        refuse_sharding(sys.modules["torch.distributed.fsdp"])
    else:
        _cufit_on_import("torch.distributed.fsdp", refuse_sharding)


# Its tensors are spread over GPUs, and what each holds is not seen here: better no answer than one without them.
def refuse_sharding(module):
    def refused(*args, **kwargs):
        raise RuntimeError("FSDP is not traced")

    module.FullyShardedDataParallel.__init__ = refused  # libraries ask what is an instance of it
    if hasattr(module, "fully_shard"):
        module.fully_shard = refused


# DistributedDataParallel's reducer measures itself with the driver's events. In its place stand the buckets that it keeps: at
# first one of all gradients, after the first backward (in the order of the parameters, from the last) as bucket_cap_mb says.
def patch_parallel(tracer):
    torch = tracer.torch
    from torch.nn.parallel import distributed as parallel

    class Reducer:
        def __init__(self, owner, parameters, sparse):
            self.owner, self.parameters, self.sparse = owner, parameters, sparse
            self.passes = 0
            self.buckets = self.rebuilt([sys.maxsize])

        def rebuilt(self, limits):
            self.buckets = None
            tensors = self.parameters[::-1]
            if getattr(self.owner, "gradient_as_bucket_view", False):
                return None
            groups = torch.distributed._compute_bucket_assignment_by_size(tensors, limits, self.sparse[::-1])
            groups = groups[0] if isinstance(groups, tuple) else groups
            buckets = [torch.empty(sum(tensors[i].numel() for i in group), dtype=tensors[group[0]].dtype, device=tensors[group[0]].device) for group in groups]
            for bucket in buckets:
                tracer.categorise(bucket, GRADIENT)
            return buckets

        def _rebuild_buckets(self):
            self.passes += 1
            if self.passes == 2:
                self.buckets = self.rebuilt([torch.distributed._DEFAULT_FIRST_BUCKET_BYTES, self.owner.bucket_bytes_cap])
            return self.passes == 2

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return lambda *args, **kwargs: None

    class Nothing:
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return lambda *args, **kwargs: None

    def helper(self, parameters, expect_sparse_gradient, *args, **kwargs):
        tracer.file.note("assumed", "DistributedDataParallel: its gradient buckets are counted in the order of the parameters", tracer.source())
        self.reducer = Reducer(self, list(parameters), list(expect_sparse_gradient))
        self.logger = Nothing()
        self.require_backward_grad_sync = True

    parallel._verify_param_shape_across_processes = lambda *args, **kwargs: None
    parallel._sync_module_states = lambda *args, **kwargs: None
    parallel.DistributedDataParallel._ddp_init_helper = helper


