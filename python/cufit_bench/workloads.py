# SPDX-License-Identifier: Apache-2.0
"""The workloads by name. Data lies on the device already: what is timed is the device's work and
torch's own, not a loader's."""

import contextlib
import importlib.util
import inspect
import os
import sys

from . import gpt2, resnet, unet
from .failure import Failure, first_line

MATRIX, COPY_BYTES = 2048, 64 << 20


class Built:
    """A workload that is ready: `step` does `items` of `unit` each time."""

    def __init__(self, step, items, unit, batch, shape):
        self.step, self.items, self.unit = step, items, unit
        self.batch, self.shape = batch, shape


def build(torch, device, name, file, batch, precision):
    if file is not None:
        return from_file(torch, device, file, batch or 1, precision)
    makers = {
        "resnet50": make_resnet50,
        "gpt2": make_gpt2,
        "sdxl-unet": make_unet,
        "matmul": make_matmul,
        "copy": make_copy,
    }
    return makers[name](torch, device, batch, precision)


def lower_type(torch, precision):
    return {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)


class Training:
    """Forward, loss, backward, step: mixed precision by autocast, and for fp16 a scaled loss."""

    def __init__(self, torch, device, precision, optimizer):
        self.optimizer = optimizer
        self.lower = lower_type(torch, precision)
        self.torch, self.kind = torch, device.type
        self.scaler = torch.cuda.amp.GradScaler() if precision == "fp16" else None

    def context(self):
        if self.lower is None:
            return contextlib.nullcontext()
        return self.torch.autocast(self.kind, dtype=self.lower)

    def step(self, loss_of):
        self.optimizer.zero_grad(set_to_none=True)
        with self.context():
            loss = loss_of()
        if self.scaler is None:
            loss.backward()
            self.optimizer.step()
            return
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()


def make_resnet50(torch, device, batch, precision):
    batch = batch or (2 if device.type == "cpu" else 64)
    lower = lower_type(torch, precision) is not None
    order = torch.channels_last if lower else torch.contiguous_format
    model = resnet.resnet50(torch).to(device, memory_format=order).train()
    images = torch.randn(batch, 3, 224, 224, device=device).to(memory_format=order)
    labels = torch.randint(1000, (batch,), device=device)
    loss = torch.nn.functional.cross_entropy
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    training = Training(torch, device, precision, optimizer)
    shape = "training, 3x224x224, SGD" + (", channels_last" if lower else "")
    return Built(
        lambda: training.step(lambda: loss(model(images), labels)), batch, "images", batch, shape
    )


def make_gpt2(torch, device, batch, precision):
    cpu = device.type == "cpu"
    batch, length = batch or (1 if cpu else 8), 64 if cpu else 1024
    model = gpt2.small(torch).to(device).train()
    tokens = torch.randint(gpt2.VOCABULARY, (batch, length + 1), device=device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    training = Training(torch, device, precision, optimizer)
    loss = torch.nn.functional.cross_entropy

    def loss_of():
        logits = model(tokens[:, :-1])
        return loss(logits.reshape(-1, gpt2.VOCABULARY).float(), tokens[:, 1:].reshape(-1))

    shape = "training, sequences of %d, AdamW" % length
    return Built(lambda: training.step(loss_of), batch * length, "tokens", batch, shape)


def make_unet(torch, device, batch, precision):
    cpu = device.type == "cpu"
    batch, side = batch or (1 if cpu else 2), 16 if cpu else 128
    kind = lower_type(torch, precision) or torch.float32
    # Made where it stays: of the CPU's memory there may be less.
    with torch.no_grad():
        model = unet.UNet(torch, device, kind).eval()
    latents = torch.randn(batch, 4, side, side, device=device, dtype=kind)
    text = torch.randn(batch, 77, unet.CONTEXT, device=device, dtype=kind)
    times = torch.full((batch,), 500, device=device)

    def step():
        with torch.no_grad():
            model(latents, times, text)

    return Built(step, batch, "images", batch, "one denoising pass, latents 4x%dx%d" % (side, side))


# The unit is the work, so that the rate is in TFLOP/s.
def make_matmul(torch, device, batch, precision):
    batch = batch or (1 if device.type == "cpu" else 64)
    kind = lower_type(torch, precision) or torch.float32
    a, b = (torch.randn(batch, MATRIX, MATRIX, device=device).to(kind) for _ in range(2))
    out = torch.empty_like(a)
    work = batch * 2.0 * MATRIX**3 / 1e12
    shape = "products of %dx%d matrices" % (MATRIX, MATRIX)
    return Built(lambda: torch.bmm(a, b, out=out), work, "TFLOP", batch, shape)


# Each byte is read and written once; the unit is 10^9 of both.
def make_copy(torch, device, batch, precision):
    batch = batch or (1 if device.type == "cpu" else 16)
    size = batch * COPY_BYTES
    source = torch.zeros(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    shape = "copies of %d MiB within the device's memory" % (size >> 20)
    return Built(lambda: target.copy_(source), 2 * size / 1e9, "GB", batch, shape)


def from_file(torch, device, file, batch, precision):
    folder = os.path.dirname(os.path.abspath(file))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location("cufit_bench_workload", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except Exception as error:
        raise Failure("workload", first_line(error)) from None
    make = getattr(module, "make", None)
    if not callable(make):
        raise Failure("workload", "there is no function make(batch, precision)")
    more = {"device": device} if "device" in inspect.signature(make).parameters else {}
    made = make(batch, precision, **more)
    if not isinstance(made, tuple) or len(made) not in (2, 3) or not callable(made[0]):
        raise Failure("workload", "make() has to return (callable, items per call)")
    step, items = made[:2]
    number = isinstance(items, (int, float)) and not isinstance(items, bool)
    if not number or not 0 < items < 1e18:
        raise Failure("workload", "the items per call have to be a number above 0")
    unit = made[2] if len(made) == 3 and isinstance(made[2], str) else "items"
    return Built(step, items, unit[:20], batch, os.path.basename(file))
