# SPDX-License-Identifier: Apache-2.0
"""The state of torch's optimizers in host memory that the GPU reads and writes over its link.

State is made in the first step of an optimizer, when the forward and backward pass have shown what
they need. What fits beside that stays on the GPU; the rest is made in a memory pool whose pages
the guard maps from the host. Later steps are torch's own: the addresses are as good as others.
"""

import atexit
import ctypes
import os

from cufit_import_hook import on_import

from .budget import budget
from .cost import Cost
from .messages import said, say, size
from .fused import put_back, use_fused
from .placing import placing_class

OLDEST = (2, 6)  # torch.cuda.MemPool with an allocator of its own


class Spiller:
    def __init__(self, mode, library):
        self.mode = mode  # "fit", "always", or "": only what the guard itself does
        self.library = library
        self.pools = {}  # by device; kept to the end of the process
        self.stepped = {}  # id of an optimizer -> itself, so that no other gets its id
        self.placing = None
        self.spilled = 0
        self.torch = self.cost = self.allocator = self.placing_type = None
        self.fused = False

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
        from torch.optim import optimizer

        self.torch, self.cost = torch, Cost(torch)
        self.placing_type = placing_class(torch)
        optimizer.register_optimizer_step_pre_hook(self.before)
        optimizer.register_optimizer_step_post_hook(self.after)

    def before(self, optimizer, args, kwargs):
        if self.placing is not None:  # a step that ended in an exception
            self.placing.leave()
            self.placing = None
        if id(optimizer) not in self.stepped:
            self.stepped[id(optimizer)] = optimizer
            try:
                self.first_step(optimizer)
            except Exception as error:
                say("OFF", why=said(error))
        self.cost.before(self.spilled)

    def first_step(self, optimizer):
        devices = self.devices(optimizer)
        if not devices or self.torch.cuda.is_current_stream_capturing():
            return
        room = {}
        for device in devices:
            pool = self.pool(device)
            if pool is None:
                return
            room[device] = budget(self.torch, optimizer, device)
            if self.mode == "always":
                room[device] = 0
        self.fused = use_fused(self.torch, optimizer)
        self.placing = self.placing_type(self.torch, room, self.pools)
        self.placing.enter()

    def after(self, optimizer, args, kwargs):
        self.cost.after()
        placing, self.placing = self.placing, None
        if placing is None:
            return
        placing.leave()
        try:
            moved = placing.move_rest(optimizer)
            if placing.spilled + moved:
                self.spilled += placing.spilled + moved
                self.tell(placing, placing.spilled + moved)
            elif self.fused:
                put_back(optimizer)
            if placing.failed:
                say("FULL", bytes=size(placing.failed))
        except Exception as error:
            say("OFF", why=said(error))

    def tell(self, placing, spilled):
        rate = self.cost.rate(placing.sample)
        say(
            "ON_FUSED" if self.fused else "ON",
            bytes=size(spilled),
            rate="%.0f" % (2 * rate / 1e9) if rate else "?",
            cost="%.0f" % (spilled / rate * 1e3) if rate else "?",
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
        if self.allocator is None:
            library = ctypes.CDLL(self.library)
            if not library.cufit_spill_possible(device):
                say("DRIVER")
                return None
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
