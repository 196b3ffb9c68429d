#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small runs whose cause of trouble is known, for tests/traces/failures: `failure_workload.py NAME FOLDER` writes NAME.pkl.gz
there (a snapshot with Python stacks) and prints one JSON line: outcome, step of death, message, peaks. Only torch is needed;
`other` takes all but 1.2 GB of the card for some seconds, the rest a few hundred MB.
"""
import gzip
import json
import os
import pickle
import subprocess
import sys

import torch
from torch import nn

name, folder = sys.argv[1:3]
torch.manual_seed(0)
dev = "cuda"
MIB = 1 << 20
total = torch.cuda.mem_get_info()[1]
step = 0


def limit(mib):
    torch.cuda.set_per_process_memory_fraction(mib * MIB / total)


def net(layers=8, width=1024):
    return nn.Sequential(*[m for _ in range(layers) for m in (nn.Linear(width, width), nn.ReLU())])


class Attention(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.q, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def attention(self, q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2) / 8, -1) @ v

    def forward(self, x):
        q, k, v = self.q(x).chunk(3, -1)
        return x + self.o(self.attention(q, k, v))


def adam(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-4)


def loop(model, optimizer, batch, kept=None, steps=8, width=1024, retain=False):
    global step
    for step in range(steps):
        x = torch.randn(batch(step), width, device=dev)
        y = model(x)
        loss = y.square().mean()
        loss.backward(retain_graph=retain)
        if kept is not None:
            kept.append(loss if retain else y.detach())
        optimizer.step()
        optimizer.zero_grad()


def graph():
    """The graph of every step is kept."""
    model = net().to(dev)
    limit(600)
    loop(model, adam(model), lambda s: 2048, [], 40, retain=True)


def kept():
    """The output of every step is kept."""
    model = net().to(dev)
    limit(700)
    loop(model, adam(model), lambda s: 2048, [], 80)


def keptok():
    """The same, and it ends before memory does."""
    model = net().to(dev)
    loop(model, adam(model), lambda s: 2048, [], 12)


def validate(model, batches):
    results = []
    for _ in range(batches):
        results.append(model(torch.randn(2048, 1024, device=dev)))
    return results


def evalgrad():
    """A validation that records graphs."""
    model = net().to(dev)
    limit(900)
    loop(model, adam(model), lambda s: 2048, steps=4)
    validate(model, 40)


def optstate():
    """Adam's state does not fit."""
    model = net(24, 2048).to(dev)
    limit(1100)
    loop(model, adam(model), lambda s: 64, width=2048)


def weights():
    """The model does not fit."""
    limit(300)
    net(40, 2048).to(dev)


def oversized():
    """One batch of twelve is ten times as large."""
    model = net().to(dev)
    limit(700)
    loop(model, adam(model), lambda s: 16384 if s == 9 else 1024 + 64 * (s % 3), steps=12)


def activation():
    """The batch is too large from the first step on."""
    model = net().to(dev)
    limit(500)
    loop(model, adam(model), lambda s: 16384)


def other():
    """Another process holds the card."""
    torch.empty(1, device=dev)
    taken = int(torch.cuda.mem_get_info()[0] - 1200 * MIB)
    code = f"import torch,time;x=torch.empty({taken},dtype=torch.uint8,device='cuda');print(1,flush=True);time.sleep(60)"
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    holder.stdout.readline()
    try:
        model = net().to(dev)
        loop(model, adam(model), lambda s: 24576)
    finally:
        holder.kill()


def graphs():
    """One captured graph for each shape, each with a pool of its own."""
    model = net().to(dev)
    model(torch.randn(8, 1024, device=dev))
    limit(900)
    keep = []
    for batch in range(1, 60):
        x = torch.randn(256 * batch, 1024, device=dev)
        captured = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.no_grad(), torch.cuda.graph(captured):
            y = model(x)
        keep.append((captured, x, y))


def frag():
    """Live blocks between free ones, and then larger requests."""
    limit(1000)
    keep = []
    for i in range(40):
        gone = torch.empty((11 + i % 5) * MIB, dtype=torch.uint8, device=dev)
        keep.append(torch.empty(9 * MIB, dtype=torch.uint8, device=dev))
        del gone
    for i in range(30):
        keep.append(torch.empty((23 + i) * MIB, dtype=torch.uint8, device=dev))


def pending():
    """Batches that a slow second stream still uses."""
    limit(1500)
    side = torch.cuda.Stream()
    a = torch.randn(8192, 8192, device=dev)
    for _ in range(60):
        x = torch.empty(100 * MIB, dtype=torch.uint8, device=dev)
        with torch.cuda.stream(side):
            for _ in range(8):
                a @ a
            x.add_(1)
        x.record_stream(side)
        del x


def quad():
    """Attention that writes its scores down, and a sequence eight times as long."""
    global step
    model = nn.Sequential(*[Attention() for _ in range(4)]).to(dev)
    limit(1500)
    optimizer = adam(model)
    for step, length in enumerate((256, 512, 1024, 8192)):
        model(torch.randn(2, length, 256, device=dev)).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def conv():
    """cuDNN tries its algorithms anew for each shape."""
    global step
    torch.backends.cudnn.benchmark = True
    model = nn.Sequential(*[nn.Conv2d(64, 64, 3, padding=1) for _ in range(4)]).to(dev)
    optimizer = adam(model)
    for step in range(6):
        model(torch.randn(16, 64, 96 + 8 * step, 96, device=dev)).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def infer():
    model = net().to(dev)
    with torch.inference_mode():
        for i in range(30):
            model(torch.randn(512 + i, 1024, device=dev))


def first():
    """Gradients are cleared at the beginning of a step, and kept as zeros."""
    global step
    model = net().to(dev)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(7):
        optimizer.zero_grad(set_to_none=False)
        model(torch.randn(2048, 1024, device=dev)).mean().backward()
        optimizer.step()


def gan():
    """Two models and two optimizers in turn."""
    global step
    a, b = net(4).to(dev), net(4).to(dev)
    first_optimizer, second_optimizer = adam(a), adam(b)
    for step in range(5):
        z = torch.randn(1024, 1024, device=dev)
        second_optimizer.zero_grad()
        b(a(z).detach()).mean().backward()
        second_optimizer.step()
        first_optimizer.zero_grad()
        b(a(z)).mean().backward()
        first_optimizer.step()


torch.cuda.memory._record_memory_history(enabled="all", context="all", stacks="python")
result = {"name": name}
try:
    globals()[name]()
    result["outcome"] = "ok"
except torch.OutOfMemoryError as error:
    result.update(outcome="oom", step=step, message=str(error).split(" If reserved")[0])
stats = torch.cuda.memory_stats()
result.update(peak=stats["allocated_bytes.all.peak"], reserved=stats["reserved_bytes.all.peak"], retries=stats["num_alloc_retries"])
with gzip.open(os.path.join(folder, name + ".pkl.gz"), "wb", 9) as file:
    pickle.dump(torch.cuda.memory._snapshot(), file)
print(json.dumps(result), flush=True)
