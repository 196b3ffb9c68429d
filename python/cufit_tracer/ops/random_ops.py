# SPDX-License-Identifier: Apache-2.0
"""Random numbers that initialisers would have drawn."""

from .generator_jump import jump


# Weights on the CPU hold nothing (tracer.py), so that nothing is drawn for them. In which order
# the program's batches come is drawn behind them from the same generator: numbers as many as the
# initialisers take are drawn and dropped, but not before the next that counts. Measured with torch
# 2.11: 32 bits for each value, 64 for one of float64; normal_ draws its last 16 again unless they
# fill a block of 16, and takes another way below 16 values. Other ways to draw (sparse_,
# bernoulli_) are not reckoned.
class Draws:
    DRAWN = 1 << 24  # up to so many are drawn: more than that is a jump of the generator
    UNIFORM = frozenset(("uniform_", "xavier_uniform_", "kaiming_uniform_", "trunc_normal_"))
    NORMAL = frozenset(("normal_", "xavier_normal_", "kaiming_normal_", "orthogonal_"))

    def __init__(self, torch):
        self.torch = torch
        self.left = 0
        aten = torch.ops.aten
        self.uniform, self.normal = aten.uniform_.default, aten.normal_.default
        self.seeded = torch.Tag.nondeterministic_seeded
        for name in ("manual_seed", "seed", "set_rng_state"):  # begin anew
            self.before(name, self.forget)
        self.before("get_rng_state", self.draw)

    def before(self, name, do):
        torch = self.torch
        real = getattr(torch.random, name)

        def run(*args, **kwargs):
            do()
            return real(*args, **kwargs)

        for space in (torch, torch.random):
            if getattr(space, name, None) is real:
                setattr(space, name, run)

    def forget(self):
        self.left = 0

    # A function of torch.nn.init that was not run, or an operator. `tensor`: without contents.
    def skipped(self, what, tensor, *args, generator=None, **kwargs):
        normal = what is self.normal or what in self.NORMAL
        own = generator is not None or any(isinstance(arg, self.torch.Generator) for arg in args)
        if (
            own
            or tensor.device.type != "cpu"
            or not (normal or what is self.uniform or what in self.UNIFORM)
        ):
            return
        count = tensor.numel()
        if normal and 0 < count < 16:
            self.draw()
            with self.torch.utils._python_dispatch._disable_current_modes():
                self.torch.empty(count, dtype=tensor.dtype, device="cpu").normal_()
            return
        if normal and count % 16:
            count += 16
        self.left += count * (2 if tensor.dtype == self.torch.float64 else 1)

    # Before one that is drawn.
    def real(self, func):
        if self.left and self.seeded in func.tags:
            self.draw()

    def draw(self):
        left, self.left = self.left, 0
        if not left:
            return
        with self.torch.utils._python_dispatch._disable_current_modes():
            if left > self.DRAWN:
                jump(self.torch, left)
            else:
                self.torch.empty(left, dtype=self.torch.uint8, device="cpu").random_()
