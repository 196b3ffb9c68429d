# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed. Its own Python code runs and decides what ZeRO allocates. Answered are the kernels
that it would compile, and when a step is over: it calls the optimizer once for each part of the
parameters."""

from cufit_import_hook import when_imported

from ..event_file import COMMUNICATION, GATHERED, GRADIENT, PARAMETER
from .sharding import name_memory

# These write where they are told to, and allocate nothing on the device.
WRITERS = ("fused_adam", "fused_lion", "cpu_adam", "cpu_adagrad", "cpu_lion")


def patch_deepspeed(tracer):
    zero, coordinator = "runtime.zero.", "PartitionedParameterCoordinator"
    for name, then in (
        ("ops.op_builder.builder", lambda module: answer_kernels(tracer, module.OpBuilder)),
        ("runtime.pipe.engine", lambda module: follow_stages(tracer, module)),
        ("runtime.engine", lambda module: join_steps(tracer, module.DeepSpeedEngine)),
        (zero + "stage_1_and_2", lambda module: of_stage_2(tracer, holder(module, ""))),
        (zero + "utils", agree),
        (zero + "stage3", lambda module: name_parts(tracer, holder(module, "_Stage3"))),
        (
            zero + "partitioned_param_coordinator",
            lambda module: name_memory(tracer, getattr(module, coordinator), GATHERING),
        ),
    ):
        when_imported("deepspeed." + name, then)


def holder(module, stage):
    return getattr(module, "DeepSpeedZeroOptimizer" + stage)


class Kernels:
    """A compiled module of DeepSpeed's. Each of its functions does nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


# No compiler is asked what it could build, and none is started.
def answer_kernels(tracer, OpBuilder):
    def load(self, *args, **kwargs):
        if self.name in WRITERS:
            return Kernels()
        tracer.file.note("no_fake_kernel", "DeepSpeed's " + self.name, tracer.source())
        raise RuntimeError("DeepSpeed's compiled operator %s cannot be traced" % self.name)

    def known(self, *args, **kwargs):
        return self.name in WRITERS

    def made(cls, **kwargs):
        cls.is_compatible = known

    OpBuilder.load = load
    for kind in (OpBuilder, *OpBuilder.__subclasses__()):
        kind.is_compatible = known
    OpBuilder.__init_subclass__ = classmethod(made)


# Of several groups of parameters each is stepped alone. While the engine is made, a step with empty
# gradients makes the states.
def join_steps(tracer, Engine):
    def within(real, counts):
        def run(self, *args, **kwargs):
            with tracer.one_step(counts):
                return real(self, *args, **kwargs)

        return run

    name = "_take_model_step" if hasattr(Engine, "_take_model_step") else "step"
    setattr(Engine, name, within(getattr(Engine, name), True))
    Engine.__init__ = within(Engine.__init__, False)


BUCKETS = (("setup_buckets", COMMUNICATION),)
GATHERING = (("fetch_sub_module", GATHERED),)


# A rank's part ends within a parameter, and holds gradients of whole ones.
def of_stage_2(tracer, Optimizer):
    name_memory(tracer, Optimizer, BUCKETS)
    real = Optimizer.__init__

    def init(self, *args, **kwargs):
        tracer.file.fact("ranks_differ", "gradients of DeepSpeed's parts")
        real(self, *args, **kwargs)

    Optimizer.__init__ = init


# What rank 0 tells the others is what this one has.
def agree(module):
    module.get_lst_from_rank0 = list
    module.assert_lst_len_same_as_other_ranks = lambda values: None


def name_parts(tracer, Stage3):
    real = Stage3.__init__

    def init(self, *args, **kwargs):
        real(self, *args, **kwargs)
        buckets = getattr(self, "ipg_buckets", None) or {"": self}
        for bucket in buckets.values():
            for name in ("buffer", "_DeepSpeedZeroOptimizer_Stage3__ipg_bucket_flat_buffer"):
                tracer.categorise(getattr(bucket, name, None), COMMUNICATION)
        tracer.categorise(getattr(self, "grad_partitions_flat_buffer", None), GRADIENT)
        for group in getattr(self, "fp16_groups", ()):
            for parameter in group:
                tracer.categorise(getattr(parameter, "ds_tensor", None), PARAMETER)

    Stage3.__init__ = init


# A stage learns the shapes that it receives from the one before, as numbers within a tensor.
def follow_stages(tracer, module):
    Engine, torch = module.PipelineEngine, tracer.torch
    if not hasattr(Engine, "_allocate_or_extend_buffers"):
        return  # of an older DeepSpeed
    real_send = Engine._send_tensor_meta

    def send(self, buffer, stage):
        rank = self.grid.stage_to_global(stage_id=stage)
        tracer.mail.send_object_list([buffer], dst=rank)
        return real_send(self, buffer, stage)

    def receive(self, stage):
        numbers = torch.empty(module.TENSOR_META_SIZE, dtype=torch.int32, device=self.device)
        module.p2p.recv(numbers, stage)
        told = []
        tracer.mail.recv_object_list(told, src=self.grid.stage_to_global(stage_id=stage))
        several = isinstance(told[0], tuple)
        made = [
            self._allocate_or_extend_buffers(place, list(tensor.shape), tensor.dtype)
            for place, tensor in enumerate(told[0] if several else told)
        ]
        return tuple(made) if several else made[0]

    Engine._send_tensor_meta, Engine._recv_tensor_meta = send, receive
