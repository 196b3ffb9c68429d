# SPDX-License-Identifier: Apache-2.0
"""What it costs: the link's rate before, the time of the steps afterwards."""

from .messages import say, size

MOST_STEPS = 64  # whose time is kept


class Cost:
    def __init__(self, torch):
        self.torch = torch
        self.times = []  # pairs of events

    # The beginning of a step whose time is kept; None of any other.
    def before(self, spilled):
        cuda = self.torch.cuda
        if not spilled or len(self.times) >= MOST_STEPS or cuda.is_current_stream_capturing():
            return None
        begun = cuda.Event(enable_timing=True)
        begun.record()
        return begun

    def after(self, begun):
        if begun is None:
            return
        end = self.torch.cuda.Event(enable_timing=True)
        end.record()
        self.times.append((begun, end))

    def rate(self, sample):
        """Bytes of a tensor in host memory that the GPU reads and writes back in a second, as Adam
        does with its state; None where it cannot be said."""
        if sample is None:
            return None
        cuda = self.torch.cuda
        with cuda.device(sample.device), self.torch.no_grad():
            flat = sample.view(-1) if sample.is_contiguous() else sample
            flat = flat[: (64 << 20) // sample.element_size()]
            flat.mul_(1)  # the same values
            first, last = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            first.record()
            for _ in range(3):
                flat.mul_(1)
            last.record()
            last.synchronize()
            seconds = first.elapsed_time(last) / 1e3
        return 3 * flat.numel() * flat.element_size() / seconds if seconds > 0 else None

    def tell(self, spilled):
        times = []
        try:
            for first, last in self.times:
                last.synchronize()
                times.append(first.elapsed_time(last))
        except Exception:  # a context that is gone with an error
            pass
        if times:
            times.sort()
            say("END", bytes=size(spilled), cost="%.0f" % times[len(times) // 2], steps=len(times))
