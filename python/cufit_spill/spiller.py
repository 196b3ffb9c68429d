# SPDX-License-Identifier: Apache-2.0
"""The state of torch's optimizers in host memory that the GPU reads and writes over its link.

State is made in the first step of an optimizer, when the forward and backward pass have shown what
they need. What fits beside that stays on the GPU; the rest is made in a memory pool whose pages
the guard maps from the host. Later steps are torch's own: the addresses are as good as others.
"""

import atexit
import ctypes
import functools
import os
import weakref

from cufit_import_hook import on_import

from .budget import budget
from .cost import Cost
from .fused import put_back, use_fused
from .messages import said, say, size
from .placing import placing_class

OLDEST = (2, 6)  # torch.cuda.MemPool with an allocator of its own


class Known:
    """Of one optimizer."""

    def __init__(self):
        self.params = 0  # that have been looked at
        self.late = []  # of these the ones without a gradient yet, so without state
        self.kept = {}  # bytes of state on each GPU
        self.placed = set()  # addresses of state that has a place


class Spiller:
    def __init__(self, mode, library):
        self.mode = mode  # "fit", "always", or "": only what the guard itself does
        self.library = library
        self.pools = {}  # by device; kept to the end of the process
        self.known = weakref.WeakKeyDictionary()
        self.spilled = 0
        self.torch = self.cost = self.allocator = self.placing_type = None

    def wait(self):
        on_import("torch", self.imported)

    def imported(self, torch):
        try:
            self.begin(torch)
        except Exception as error:
            say("OFF", why=said(error))

    def begin(self, torch):
        atexit.register(self.at_exit)
        if not self.mode:
            return
        version = tuple(int(part) for part in torch.__version__.split(".")[:2])
        if version < OLDEST:
            say("OLD", torch=torch.__version__)
            return
        self.torch, self.cost = torch, Cost(torch)
        self.placing_type = placing_class(torch)
        self.wrap(torch.optim.Optimizer)

    # The step of each class passes through profile_hook_step once, before its first optimizer is
    # made.
    def wrap(self, optimizer):
        hook, load = optimizer.profile_hook_step, optimizer.load_state_dict

        def profile_hook_step(function):
            @functools.wraps(function)
            def step(itself, *args, **kwargs):
                return self.step(itself, function, args, kwargs)

            return hook(step)

        @functools.wraps(load)
        def load_state_dict(itself, *args, **kwargs):
            return self.load(itself, load, args, kwargs)

        optimizer.profile_hook_step = staticmethod(profile_hook_step)
        optimizer.load_state_dict = load_state_dict

    def step(self, optimizer, function, args, kwargs):
        placing, fused = self.prepare(optimizer)
        if placing is None:
            begun = self.try_it(lambda: self.cost.before(self.spilled))
            result = function(optimizer, *args, **kwargs)
            self.try_it(lambda: self.cost.after(begun))
            return result
        args, kwargs = self.around_closure(optimizer, placing, args, kwargs)
        done = False
        try:
            with placing:
                result = function(optimizer, *args, **kwargs)
            done = True
        finally:
            if fused and not (done and placing.spilled):
                self.try_it(lambda: put_back(optimizer))
        self.try_it(lambda: self.settle(optimizer, placing, fused and placing.spilled))
        return result

    def try_it(self, function):
        try:
            return function()
        except Exception as error:
            say("OFF", why=said(error))

    # (None, False) where nothing is to be placed.
    def prepare(self, optimizer):
        return self.try_it(lambda: self.begin_step(optimizer)) or (None, False)

    def begin_step(self, optimizer):
        count = sum(len(group["params"]) for group in optimizer.param_groups)
        known = self.known.get(optimizer)
        if known is not None and known.params == count:
            if all(param.grad is None for param in known.late):
                return None
        devices = self.devices(optimizer)
        if not devices or self.torch.cuda.is_current_stream_capturing():
            return None
        if any(self.pool(device) is None for device in devices):
            self.known.setdefault(optimizer, Known()).params = count
            return None
        fused = use_fused(self.torch, optimizer)
        placed = self.known.setdefault(optimizer, Known()).placed
        return self.placing_type(self.torch, devices, self.pools, placed), fused

    # A closure runs the forward and backward pass inside of the step: what they make is no state,
    # and only then it is known what they need.
    def around_closure(self, optimizer, placing, args, kwargs):
        closure = args[0] if args else kwargs.get("closure")
        if closure is None:
            self.try_it(lambda: placing.give_room(self.room(optimizer, placing.devices)))
            return args, kwargs

        @functools.wraps(closure)
        def outside(*more, **options):
            placing.room = None
            result = closure(*more, **options)
            self.try_it(lambda: placing.give_room(self.room(optimizer, placing.devices)))
            return result

        if args:
            return (outside, *args[1:]), kwargs
        return args, {**kwargs, "closure": outside}

    def room(self, optimizer, devices):
        out = {}
        for device in devices:
            placed = self.known.setdefault(optimizer, Known()).placed
            out[device] = budget(self.torch, optimizer, device, placed)
            if self.mode == "always":
                out[device] = 0
        return out

    def settle(self, optimizer, placing, fused):
        known = self.known.setdefault(optimizer, Known())
        params = [param for group in optimizer.param_groups for param in group["params"]]
        known.params = len(params)
        known.late = [param for param in params if param.requires_grad and param.grad is None]
        placing.move_rest(optimizer)
        for device, amount in placing.kept.items():
            known.kept[device] = known.kept.get(device, 0) + amount
        if placing.spilled:
            self.spilled += placing.spilled
            self.tell(placing, fused)
        if placing.failed:
            say("FULL", bytes=size(placing.failed))

    # Before the first step nobody knows what will fit: then all of it goes to the host. Later as
    # much stays as stayed before.
    def load(self, optimizer, function, args, kwargs):
        placing = self.try_it(lambda: self.begin_load(optimizer))
        if placing is None:
            return function(optimizer, *args, **kwargs)
        with placing:
            result = function(optimizer, *args, **kwargs)
        self.try_it(lambda: self.settle(optimizer, placing, False))
        return result  # None

    def begin_load(self, optimizer):
        devices = self.devices(optimizer)
        if not devices or any(self.pool(device) is None for device in devices):
            return None
        known = self.known.setdefault(optimizer, Known())
        known.placed = set()
        placing = self.placing_type(self.torch, devices, self.pools, known.placed)
        placing.loading = True
        placing.give_room({device: known.kept.get(device, 0) for device in devices})
        known.kept = {}
        return placing

    def tell(self, placing, fused):
        rate = self.cost.rate(placing.sample)
        asked = self.mode == "always" or placing.loading
        say(
            "ON" + ("_ALL" if asked else "") + ("_FUSED" if fused else ""),
            bytes=size(placing.spilled),
            rate="%.0f" % (2 * rate / 1e9) if rate else "?",
            cost="%.0f" % (placing.spilled / rate * 1e3) if rate else "?",
        )

    def devices(self, optimizer):
        found = []
        for group in optimizer.param_groups:
            for param in group["params"]:
                if param.is_cuda and param.requires_grad and param.device.index not in found:
                    found.append(param.device.index)
        return found

    def pool(self, device):
        if device in self.pools:
            return self.pools[device]
        self.pools[device] = None  # what fails below is said once
        library = ctypes.CDLL(self.library)
        if not library.cufit_spill_possible(device):
            say("DRIVER")
            return None
        if self.allocator is None:
            self.allocator = self.torch.cuda.memory.CUDAPluggableAllocator(
                self.library, "cufit_spill_alloc", "cufit_spill_free"
            )
        with self.torch.cuda.device(device):
            self.pools[device] = self.torch.cuda.MemPool(self.allocator.allocator())
        return self.pools[device]

    def at_exit(self):
        if self.spilled:
            self.cost.tell(self.spilled)
        if not os.environ.get("CUFIT_SPILL", "0").strip("0"):
            return
        library = ctypes.CDLL(self.library)
        library.cufit_spill_total.restype = ctypes.c_uint64
        if library.cufit_spill_total():
            say("EMERGENCY", bytes=size(library.cufit_spill_total()))
