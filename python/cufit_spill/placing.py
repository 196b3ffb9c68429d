# SPDX-License-Identifier: Apache-2.0
"""Where the tensors go that an optimizer makes."""

LEAST = 1 << 20  # smaller ones are not worth it: step counters, scales


def device_of(tensor):
    return tensor.device.index if tensor.is_cuda else None


def placing_class(torch):
    from torch.overrides import TorchFunctionMode

    return type("Placing", (Placing, TorchFunctionMode), {})


class Placing:
    """A mode of torch's functions. What makes a tensor like another one is how torch's optimizers
    make state; temporaries are made by other functions and stay on the GPU."""

    def __init__(self, torch, devices, pools, placed):
        super().__init__()
        self.torch, self.devices, self.pools = torch, devices, pools
        self.makers = {
            torch.zeros_like,
            torch.empty_like,
            torch.ones_like,
            torch.full_like,
            torch.clone,
            torch.Tensor.clone,
        }
        self.loading = False  # a checkpoint: tensors come by Tensor.to
        self.room = None  # bytes by device; None: not known yet, nothing is placed
        self.kept = {}  # bytes by device
        self.spilled = self.failed = 0
        self.sample = None  # a tensor in host memory, to measure the link with
        self.placed = placed  # addresses of what was given a place, here or there

    def give_room(self, room):
        self.room = dict(room)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.room is None or not args:
            return function(*args, **kwargs)
        if self.loading:
            if function is not self.torch.Tensor.to:
                return function(*args, **kwargs)
            device = self.target(args, kwargs)
        elif function in self.makers:
            local = getattr(args[0], "_local_tensor", args[0])
            device = device_of(local) if kwargs.get("device") is None else self.target((), kwargs)
        else:
            return function(*args, **kwargs)
        amount = self.amount(args[0], kwargs)
        if device not in self.room or amount < LEAST:
            return function(*args, **kwargs)
        return self.place(device, amount, lambda: function(*args, **kwargs))

    # The GPU that `to`, or a maker with device=, names.
    def target(self, args, kwargs):
        for value in (kwargs.get("device"), *args[1:]):
            if isinstance(value, (str, int)) or isinstance(value, self.torch.device):
                named = self.torch.device(value)
                if named.type != "cuda":
                    return None
                return self.torch.cuda.current_device() if named.index is None else named.index
        return None

    def amount(self, like, kwargs):
        local = getattr(like, "_local_tensor", like)
        dtype = kwargs.get("dtype") or local.dtype
        return local.numel() * dtype.itemsize

    def place(self, device, amount, make):
        if amount <= self.room[device]:
            self.keep(device, amount)
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

    def keep(self, device, amount):
        self.room[device] -= amount
        self.kept[device] = self.kept.get(device, 0) + amount

    # State that came by other ways (a checkpoint on the GPU, kernels of one's own).
    def move_rest(self, optimizer):
        if self.room is None:
            return
        for state in optimizer.state.values():
            for key, value in list(state.items()):
                if not self.torch.is_tensor(value) or hasattr(value, "_local_tensor"):
                    continue
                device, amount = device_of(value), value.numel() * value.element_size()
                if device not in self.room or amount < LEAST or self.is_known(value):
                    continue
                if amount <= self.room[device]:
                    self.keep(device, amount)
                else:
                    state[key] = self.place(device, amount, value.clone)

    def remember(self, made):
        self.placed.add(getattr(made, "_local_tensor", made).data_ptr())
        return made

    def is_known(self, tensor):
        return tensor.data_ptr() in self.placed
