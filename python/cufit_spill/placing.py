# SPDX-License-Identifier: Apache-2.0
"""Where the tensors go that an optimizer makes in its first step."""

LEAST = 1 << 20  # smaller ones are not worth it: step counters, scales


def device_of(tensor):
    return tensor.device.index if tensor.is_cuda else None


def placing_class(torch):
    from torch.overrides import TorchFunctionMode

    return type("Placing", (Placing, TorchFunctionMode), {})


class Placing:
    """A mode of torch's functions. What makes a tensor like another one is how torch's optimizers
    make state; temporaries are made by other functions and stay on the GPU."""

    def __init__(self, torch, room, pools):
        super().__init__()
        self.torch, self.room, self.pools = torch, room, pools
        self.makers = {
            torch.zeros_like,
            torch.empty_like,
            torch.ones_like,
            torch.full_like,
            torch.clone,
            torch.Tensor.clone,
        }
        self.active = False
        self.kept = self.spilled = self.failed = 0
        self.sample = None  # a tensor in host memory, to measure the link with
        self.placed = set()  # addresses of what was given a place, here or there

    def enter(self):
        self.active = True
        self.__enter__()

    def leave(self):
        if self.active:
            self.active = False
            self.__exit__(None, None, None)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not self.active or function not in self.makers or not args:
            return function(*args, **kwargs)
        return self.place(args[0], lambda: function(*args, **kwargs))

    def place(self, like, make):
        local = getattr(like, "_local_tensor", like)
        device = device_of(local)
        amount = local.numel() * local.element_size()
        if device not in self.room or amount < LEAST:
            return make()
        if amount <= self.room[device]:
            self.room[device] -= amount
            self.kept += amount
            return self.remember(make())
        try:
            with self.torch.cuda.use_mem_pool(self.pools[device], device):
                made = make()
        except self.torch.cuda.OutOfMemoryError:  # of the host, or of its cgroup
            self.failed += amount
            return self.remember(make())
        self.spilled += amount
        self.remember(made)
        local = getattr(made, "_local_tensor", made)
        if self.sample is None or local.numel() > self.sample.numel():
            self.sample = local
        return made

    def move_rest(self, optimizer):
        """State that came by other ways (a checkpoint, kernels of one's own): the bytes moved."""
        moved = 0
        for state in optimizer.state.values():
            for key, value in list(state.items()):
                if not self.torch.is_tensor(value) or self.is_known(value):
                    continue
                if hasattr(value, "_local_tensor") or value.numel() * value.element_size() < LEAST:
                    continue
                before = self.spilled
                copy = self.place(value, lambda value=value: value.clone())
                if self.spilled > before:
                    state[key] = copy
                    moved += self.spilled - before
        self.spilled -= moved
        return moved

    def remember(self, made):
        self.placed.add(getattr(made, "_local_tensor", made).data_ptr())
        return made

    def is_known(self, tensor):
        return tensor.data_ptr() in self.placed
