# SPDX-License-Identifier: Apache-2.0
"""The tracer of one program: what it knows, and what it puts in place of torch's own."""

import sys
import weakref

from .by_identity import ByIdentity
from .compile.compiler import patch_compile
from .cuda.device import pretend_cuda
from .cuda.graphs import patch_graphs
from .cuda.guard import pretend_guard
from .cuda.older_names import patch_older_names
from .cuda.streams import Waits
from .cuda.triton_kernels import patch_triton
from .event_file import EventFile, SETUP
from .facts import Facts
from .ops.attention import patch_attention
from .ops.autograd_formulas import Formulas
from .ops.inplace_ops import GradientSums, patch_linear
from .ops.dispatch_mode import make_mode
from .ops.one_hot import patch_one_hot
from .ops.random_ops import Draws
from .ops.recurrent import patch_recurrent
from .ops.script import leave_scripts_unfused
from .ops.sequences import patch_ctc, patch_packing
from .plans.patches import patch_variants
from .program.addresses import patch_addresses
from .program.checks import patch_distributions, patch_inference_mode
from .program.deepspeed import patch_deepspeed
from .program.distributed import patch_distributed
from .program.lazy_modules import patch_lazy
from .program.saving import patch_saving
from .program.sharding import patch_sharding
from .program.subclasses import patch_subclasses
from .program.threads import patch_threads
from .steps.after_steps import AfterSteps, patch_after_steps
from .steps.batch_shapes import BatchShapes
from .steps.loaders import patch_loaders
from .steps.modules import patch_modules
from .steps.optimizers import patch_optimizers
from .steps.repeated_forward import Repeats
from .steps.steps import Steps
from .storages import Storages
from .user_files import users_file


# In this order.
PATCHES = (
    pretend_cuda,
    patch_modules,
    patch_lazy,
    patch_distributions,
    patch_optimizers,
    patch_loaders,
    patch_after_steps,
    patch_inference_mode,
    patch_linear,
    patch_one_hot,
    leave_scripts_unfused,
    patch_attention,
    patch_recurrent,
    patch_ctc,
    patch_packing,
    patch_compile,
    patch_saving,
    patch_distributed,
    patch_sharding,
    patch_deepspeed,
    patch_older_names,
    patch_graphs,
    patch_subclasses,
    patch_addresses,
    patch_triton,
    patch_variants,
)


class Tracer(Storages, Steps, BatchShapes, Facts):
    SHADOW_ELEMENTS = 1 << 20
    SHADOW_FLOATS = 1 << 16
    # Reads of one comparison in a step, after which it is answered the other way.
    MOST_COMPARED = 200
    # Steps of some optimizers while another has not stepped, and operators since the first began.
    MOST_AGAIN, OPERATORS_AGAIN = 20, 400000
    # Uninitialised CPU tensors of this size and more hold nothing worth keeping.
    FAKE_EMPTY_ELEMENTS = 4096

    def __init__(self, torch, wanted):
        self.torch = torch
        self.version = tuple(int(part) for part in torch.__version__.split(".")[:2])
        self.wanted = wanted
        self.gpu_name, self.capability, self.total = wanted["GPU"]
        self.file = EventFile(wanted["OUT"])
        self.draws = Draws(torch)
        self.waits = Waits(self)
        self.phase = SETUP
        self.steps = 0
        self.enough = wanted["STEPS"]  # an answer can rest on these
        self.operators = 0  # so far: the work by which the trace is bounded, on any machine alike
        self.began = self.until = None  # operators at the first step; from which on none is added
        self.given = {}  # by module, place and dimensions: the largest shape of the step under way
        self.shapes = {}  # the same, those of all steps
        self.drawn = None  # whether sizes change every so many steps; None: not looked up
        self.acts, self.acts_before, self.until_unalike = [], (0, 0), None  # of steps
        self.shown = 0  # how deep the module stands whose arguments were taken
        self.modules = []  # names of those whose forward runs
        self.outermost = weakref.WeakSet()  # modules that no other calls
        self.told = weakref.WeakSet()  # whether to train
        self.communicators = None  # of NCCL
        self.names = weakref.WeakKeyDictionary()  # of modules whose parameters were told
        self.kind = None  # category of what is allocated now, where that is known
        self.inputs = set()  # numbers of the storages that hold batches
        self.weights = set()  # the same of parameters
        self.allocated = self.peak = 0
        self.loaders = 0
        self.made_up = False  # an array has come out of a tensor without contents
        self.batch_found = None  # of the DataLoader made first, then of the one that trains
        # DataLoaders, by the batch size and the line that made them.
        self.unreached, self.trained_with = {}, None
        self.optimizers = 0
        self.made = weakref.WeakSet()  # optimizers
        self.first_round, self.round, self.stepped = [], None, set()
        # Where PyTorch has no optimizer: weights have gradients (False), and were written to since
        # (True).
        self.by_hand = None
        self.parts = None  # of a step that is made in parts: the optimizers so far
        self.again = 0  # steps in the first round of optimizers that had stepped
        self.by_function = False
        self.variant = None
        self.compiling = False  # within torch.compile, which allocates nothing
        self.capturing = self.captured = False  # into a CUDA graph
        self.compiled = False  # it has compiled something
        self.counting = False  # what the operators of a step move
        self.valid = False  # within a check that raises where a value is not what it has to be
        self.dropout_state = None
        self.adds_bias = False  # inside a linear layer
        self.attends = False  # within scaled_dot_product_attention, which tells of its kernel
        self.composed = set()  # classes of tensors that are made of others
        self.own_kernels = {}  # by operator, in place of its fake kernel
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
        import warnings

        # copy.deepcopy of a parameter does.
        warnings.filterwarnings("ignore", "Accessing the data pointer of FakeTensor")
        pretend_guard(torch)
        # torch.tensor(..., device="cuda") goes through the mode.
        torch._C._set_only_lift_cpu_tensors(True)
        self.make_fake_mode()
        self.sums = GradientSums(self)
        self.formulas = Formulas(self)
        built = torch.version.cuda
        for patch in PATCHES:
            patch(self)
        self.tell_beginning(built)
        self.file.before_end += self.tell_settings, self.tell_lengths
        self.mode = make_mode(self)
        self.mode.__enter__()
        patch_threads(self)

    def make_fake_mode(self):
        torch = self.torch
        import torch._subclasses.fake_tensor as fake_tensor

        Mode = fake_tensor.FakeTensorMode
        fake_tensor.init_gpu_context = fake_tensor.init_cuda_context = lambda *args: None
        Mode.avoid_device_init = property(lambda self: True)
        Mode.__deepcopy__ = lambda self, memo: self  # a copied parameter stays in this mode
        self.FakeTensor = fake_tensor.FakeTensor
        # transformers looks here whether somebody traces, and then takes other ways than it takes
        # on a GPU.
        torch._subclasses.FakeTensor = type("FakeTensor", (fake_tensor.FakeTensor,), {})
        self.fake = Mode(allow_non_fake_inputs=True, allow_fallback_kernels=False)
        self.DataDependent = fake_tensor.DataDependentOutputException
        self.DynamicShape = fake_tensor.DynamicOutputShapeException
        self.Unsupported = fake_tensor.UnsupportedOperatorException
        self.storages = ByIdentity()  # numbers of those that have memory
        self.held = ByIdentity(self.released)  # number and bytes, of all that were told of
        self.shadows = ByIdentity()
