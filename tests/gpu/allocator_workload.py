#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One small training workload on a GPU, for tests/traces: `allocator_workload.py '{"name": "cnn", ...}'` prints one JSON line.

Keys: name (below), conf (PYTORCH_CUDA_ALLOC_CONF), limit (bytes that the allocator may hold), trace (file for the gzipped
snapshot), entries (length of the recording's ring), steps. Only torch is needed. Changes no setting of the card.
"""
import gzip
import json
import os
import pickle
import sys

spec = json.loads(sys.argv[1])
if spec.get("conf"):
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = spec["conf"]
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.backends.cudnn.benchmark = False
dev = torch.device("cuda")
total = torch.cuda.mem_get_info()[1]
if spec.get("limit"):
    torch.cuda.set_per_process_memory_fraction(spec["limit"] / total)
if spec.get("trace"):
    torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=spec.get("entries", 4_000_000))
sizes = torch.Generator().manual_seed(7)


def pick(low, high):
    return int(torch.randint(low, high + 1, (1,), generator=sizes))


class Attention(nn.Module):
    def __init__(self, width, heads, rank=0):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.rank = rank
        if rank:
            self.a, self.b = nn.Linear(width, rank, bias=False), nn.Linear(rank, 3 * width, bias=False)

    def forward(self, x):
        h = self.norm1(x)
        qkv = self.qkv(h) + (self.b(self.a(h)) if self.rank else 0)
        q, k, v = (t.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2) for t in qkv.chunk(3, -1))
        w = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, -1)  # the quadratic one on purpose
        x = x + self.out((w @ v).transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Language(nn.Module):
    def __init__(self, width=512, layers=6, heads=8, words=16000, rank=0):
        super().__init__()
        self.words, self.embed = words, nn.Embedding(words, width)
        self.layers = nn.ModuleList(Attention(width, heads, rank) for _ in range(layers))
        self.head = nn.Linear(width, words)
        self.checkpoint = False

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False) if self.checkpoint else layer(x)
        return F.cross_entropy(self.head(x).flatten(0, 1).float(), ids.flatten())


def conv_net(width=48):
    parts, inside = [], 3
    for i in range(5):
        outside = width * 2 ** min(i, 3)
        parts += [nn.Conv2d(inside, outside, 3, stride=2 if i else 1, padding=1), nn.BatchNorm2d(outside), nn.ReLU()]
        inside = outside
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 100))


def ids(batch, length, words=16000):
    return torch.randint(0, words, (batch, length), device=dev)


def cnn(step, state):
    """Convolutions, SGD with momentum, two image sizes, a validation without gradients every fourth step, empty_cache once."""
    if not state:
        state["model"] = conv_net().to(dev)
        state["opt"] = torch.optim.SGD(state["model"].parameters(), lr=0.01, momentum=0.9)
    model, opt = state["model"], state["opt"]
    side = (96, 160)[step % 2]
    x, y = torch.randn(24, 3, side, side, device=dev), torch.randint(0, 100, (24,), device=dev)
    F.cross_entropy(model(x), y).backward()
    opt.step()
    opt.zero_grad(set_to_none=True)
    if step % 4 == 3:
        with torch.no_grad():
            model(torch.randn(40, 3, 192, 192, device=dev))
    if step == 5:
        torch.cuda.empty_cache()


def varlen(step, state):
    """A transformer whose sequences have another length each step."""
    if not state:
        state["model"] = Language().to(dev)
        state["opt"] = torch.optim.AdamW(state["model"].parameters(), lr=1e-4)
    state["model"](ids(8, pick(48, 448))).backward()
    state["opt"].step()
    state["opt"].zero_grad(set_to_none=True)


def accum(step, state):
    """Four micro-batches of different size per optimizer step."""
    if not state:
        state["model"] = Language(width=640, layers=4).to(dev)
        state["opt"] = torch.optim.Adam(state["model"].parameters(), lr=1e-4, foreach=False)
    for _ in range(4):
        (state["model"](ids(pick(2, 6), pick(128, 320))) / 4).backward()
    state["opt"].step()
    state["opt"].zero_grad(set_to_none=True)


def amp(step, state):
    """float16 autocast with a gradient scaler."""
    if not state:
        state["model"] = Language(width=768, layers=5, heads=12).to(dev)
        state["opt"] = torch.optim.AdamW(state["model"].parameters(), lr=1e-4)
        state["scaler"] = torch.amp.GradScaler("cuda")
    with torch.autocast("cuda", torch.float16):
        loss = state["model"](ids(6, pick(100, 400)))
    state["scaler"].scale(loss).backward()
    state["scaler"].step(state["opt"])
    state["scaler"].update()
    state["opt"].zero_grad(set_to_none=True)


def graphs(step, state):
    """Two captured inference graphs that share a pool, beside eager training."""
    if not state:
        state["model"] = Language(width=384, layers=4).to(dev)
        state["opt"] = torch.optim.AdamW(state["model"].parameters(), lr=1e-4)
        state["graphs"], pool = [], None
        for length in (128, 256):
            static = ids(4, length)
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side), torch.no_grad():
                state["model"](static)
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.no_grad(), torch.cuda.graph(graph, pool=pool):
                out = state["model"](static)
            pool = pool or graph.pool()
            state["graphs"].append((graph, static, out))
    for graph, static, _ in state["graphs"]:
        static.copy_(ids(*static.shape))
        graph.replay()
    state["model"](ids(4, pick(64, 256))).backward()
    state["opt"].step()
    state["opt"].zero_grad(set_to_none=True)


def streams(step, state):
    """Batches are copied on a second stream and used on the first: record_stream and blocks that wait for events."""
    if not state:
        state["model"] = conv_net(32).to(dev)
        state["opt"] = torch.optim.Adam(state["model"].parameters(), lr=1e-3)
        state["side"] = torch.cuda.Stream()
        state["host"] = [torch.randn(b, 3, 128, 128).pin_memory() for b in (16, 24, 32)]
    side, main = state["side"], torch.cuda.current_stream()
    with torch.cuda.stream(side):
        x = state["host"][step % 3].to(dev, non_blocking=True)
        x = (x - x.mean()) / x.std()
    main.wait_stream(side)
    x.record_stream(main)
    F.cross_entropy(state["model"](x), torch.randint(0, 100, (x.shape[0],), device=dev)).backward()
    state["opt"].step()
    state["opt"].zero_grad(set_to_none=True)
    del x


def lora(step, state):
    """Frozen base, rank-16 adapters, checkpointed layers, bf16."""
    if not state:
        model = Language(width=1024, layers=6, heads=16, rank=16).to(dev).to(torch.bfloat16)
        model.checkpoint = True
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name.endswith(("a.weight", "b.weight")))
        state["model"] = model
        state["opt"] = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    state["model"](ids(4, pick(128, 512))).backward()
    state["opt"].step()
    state["opt"].zero_grad(set_to_none=True)


run = {f.__name__: f for f in (cnn, varlen, accum, amp, graphs, streams, lora)}[spec["name"]]
result, state, peaks = dict(spec), {}, []
try:
    for step in range(spec.get("steps", 12)):
        run(step, state)
        torch.cuda.synchronize()
        peaks.append([torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()])
    result["outcome"] = "ok"
except torch.OutOfMemoryError as error:
    result.update(outcome="oom", oom_step=len(peaks), message=str(error).split(" If reserved")[0])
stats = torch.cuda.memory_stats()
result.update(
    peak_allocated=stats["allocated_bytes.all.peak"], peak_reserved=stats["reserved_bytes.all.peak"],
    peak_segments=stats["segment.all.peak"], retries=stats["num_alloc_retries"], cuda_mallocs=stats.get("num_device_alloc"),
    cuda_frees=stats.get("num_device_free"), total=total, torch=torch.__version__, gpu=torch.cuda.get_device_name(0))
if spec.get("trace"):
    snapshot = torch.cuda.memory._snapshot()
    result["events"] = sum(len(trace) for trace in snapshot["device_traces"])
    with gzip.open(spec["trace"], "wb", compresslevel=9) as file:
        pickle.dump(snapshot, file)
print("RESULT " + json.dumps(result), flush=True)
