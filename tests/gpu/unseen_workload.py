#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seven workloads that the allocator model was not fitted to: `unseen_workload.py OUT` on a machine with one GPU.

Each is traced under default settings, then measured (not traced) under other settings and under limits of 1.02 to 1.3
times its peak of allocated bytes. Writes OUT/unseen-NAME.pkl.gz and OUT/unseen.jsonl. Changes no setting of the card.
`unseen_workload.py '{"name": "unet", ...}'` makes one run; keys as in allocator_workload.py.
"""
import concurrent.futures
import gzip
import json
import os
import pickle
import subprocess
import sys

NAMES = ["unet", "encoder", "generate", "rnn", "prefetch", "tables", "bf16"]
SETTINGS = ["", "expandable_segments:True", "max_split_size_mb:64", "roundup_power2_divisions:4", "large_segment_size_mb:40",
            "max_split_size_mb:32,roundup_power2_divisions:8"]
LIMITED = [("", 1.02), ("", 1.06), ("", 1.12), ("", 1.25), ("expandable_segments:True", 1.02), ("expandable_segments:True", 1.1),
           ("garbage_collection_threshold:0.8", 1.1), ("garbage_collection_threshold:0.6", 1.3), ("max_split_size_mb:64", 1.1),
           ("roundup_power2_divisions:4", 1.15)]


def one(spec):
    done = subprocess.run([sys.executable, os.path.abspath(__file__), json.dumps(spec)], capture_output=True, text=True, timeout=120)
    lines = [line[7:] for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        sys.exit(f"{spec}: {done.stderr[-400:]}")
    return json.loads(lines[0])


def record(out):
    with concurrent.futures.ThreadPoolExecutor(15) as pool:
        base = list(pool.map(one, [{"name": name, "trace": f"{out}/unseen-{name}.pkl.gz"} for name in NAMES]))
        specs = []
        for run in base:
            specs += [{"name": run["name"], "conf": conf} for conf in SETTINGS]
            specs += [{"name": run["name"], "conf": conf, "limit": int(run["peak_allocated"] * times)} for conf, times in LIMITED]
        with open(f"{out}/unseen.jsonl", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in pool.map(one, specs))


if len(sys.argv) != 2:
    sys.exit(__doc__)
if not sys.argv[1].startswith("{"):
    record(sys.argv[1])
    sys.exit()

spec = json.loads(sys.argv[1])
if spec.get("conf"):
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = spec["conf"]
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)
dev = torch.device("cuda")
total = torch.cuda.mem_get_info()[1]
if spec.get("limit"):
    torch.cuda.set_per_process_memory_fraction(spec["limit"] / total)
if spec.get("trace"):
    torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=4_000_000)
sizes = torch.Generator().manual_seed(11)


def pick(low, high):
    return int(torch.randint(low, high + 1, (1,), generator=sizes))


def ids_of(batch, length, words=12000):
    return torch.randint(0, words, (batch, length), device=dev)


def convolutions(inside, outside):
    return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1), nn.GroupNorm(8, outside), nn.SiLU(),
                         nn.Conv2d(outside, outside, 3, padding=1), nn.SiLU())


class UNet(nn.Module):
    def __init__(self, c=(32, 64, 128)):
        super().__init__()
        self.down = nn.ModuleList([convolutions(3 if i == 0 else c[i - 1], c[i]) for i in range(3)])
        self.up = nn.ModuleList([convolutions(c[2] + c[1], c[1]), convolutions(c[1] + c[0], c[0])])
        self.out = nn.Conv2d(c[0], 1, 1)

    def forward(self, x):
        kept = []
        for i, down in enumerate(self.down):
            x = down(x if i == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        for up, j in zip(self.up, (1, 0)):
            x = up(torch.cat([F.interpolate(x, scale_factor=2), kept[j]], 1))
        return self.out(x)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(256, 512, 2, batch_first=True), nn.Linear(512, 256)

    def forward(self, x):
        return self.out(self.lstm(x)[0])


class Tables(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(200000, 64, mode="sum")
        self.net = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))

    def forward(self, ids):
        return self.net(self.bag(ids))


def transformer(width=384, layers=5, words=12000):
    layer = nn.TransformerEncoderLayer(width, 6 if width == 384 else 8, 4 * width, batch_first=True, dropout=0.1)
    return nn.ModuleDict({"embed": nn.Embedding(words, width), "body": nn.TransformerEncoder(layer, layers), "head": nn.Linear(width, words)})


def language(model, ids):
    return model["head"](model["body"](model["embed"](ids)))


def loss(logits, ids):
    return F.cross_entropy(logits.flatten(0, 1), ids.flatten())


def model_of(state, make, optimizer):
    if not state:
        state["model"] = make().to(dev)
        state["opt"] = optimizer(state["model"].parameters())
    return state["model"], state["opt"]


def update(opt):
    opt.step()
    opt.zero_grad(set_to_none=True)


def unet(step, state):
    """Convolutions with skip connections at three image sizes."""
    model, opt = model_of(state, UNet, lambda p: torch.optim.AdamW(p, lr=1e-3))
    side = (96, 128, 160)[step % 3]
    F.mse_loss(model(torch.randn(12, 3, side, side, device=dev)), torch.randn(12, 1, side, side, device=dev)).backward()
    update(opt)


def encoder(step, state):
    """Batch and length both vary; dropout, gradient clipping."""
    model, opt = model_of(state, transformer, lambda p: torch.optim.Adam(p, lr=1e-4))
    ids = ids_of(pick(4, 12), pick(64, 300))
    loss(language(model, ids), ids).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    update(opt)


def generate(step, state):
    """Inference with a growing cache."""
    if not state:
        state["model"] = transformer(512, 4).to(dev).eval()
    model = state["model"]
    with torch.no_grad():
        ids = ids_of(pick(8, 24), pick(20, 60))
        cache = torch.zeros(ids.shape[0], 0, 512, device=dev)
        for _ in range(12):
            logits = language(model, ids)
            cache = torch.cat([cache, model["embed"](ids)], 1)
            ids = torch.cat([ids, logits[:, -1:].argmax(-1)], 1)
            torch.topk(logits[:, -1], 50)


def rnn(step, state):
    """cuDNN's LSTM."""
    model, opt = model_of(state, Recurrent, lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9))
    x = torch.randn(pick(16, 64), pick(50, 250), 256, device=dev)
    F.mse_loss(model(x), x).backward()
    update(opt)


def prefetch(step, state):
    """Batches are made on two further streams and used on the first."""
    model, opt = model_of(state, lambda: transformer(448, 4), lambda p: torch.optim.AdamW(p, lr=1e-4))
    if "streams" not in state:
        state["streams"], state["queue"] = [torch.cuda.Stream(), torch.cuda.Stream()], []
    main = torch.cuda.current_stream()
    for stream in state["streams"]:
        with torch.cuda.stream(stream):
            ids = ids_of(pick(4, 10), pick(64, 256))
            noise = torch.randn(ids.shape[0], ids.shape[1], 448, device=dev).mul_(0.1)
        state["queue"].append((ids, noise, stream))
    while state["queue"]:
        ids, noise, stream = state["queue"].pop(0)
        main.wait_stream(stream)
        ids.record_stream(main)
        noise.record_stream(main)
        loss(model["head"](model["body"](model["embed"](ids) + noise)), ids).backward()
        del ids, noise
    update(opt)


def tables(step, state):
    """Embedding bags, sort, unique, Adagrad."""
    model, opt = model_of(state, Tables, lambda p: torch.optim.Adagrad(p, lr=0.01))
    ids = torch.randint(0, 200000, (pick(4000, 40000), 20), device=dev)
    y = model(ids)
    torch.sort(y.flatten())
    torch.unique(ids.flatten()[: pick(10000, 80000)])
    y.mean().backward()
    update(opt)


def bf16(step, state):
    """bfloat16 autocast; empty_cache every fourth step."""
    model, opt = model_of(state, lambda: transformer(640, 4), lambda p: torch.optim.AdamW(p, lr=1e-4))
    ids = ids_of(6, pick(80, 400))
    with torch.autocast("cuda", torch.bfloat16):
        value = loss(language(model, ids), ids)
    value.backward()
    update(opt)
    if step % 4 == 3:
        torch.cuda.empty_cache()


run = {f.__name__: f for f in (unet, encoder, generate, rnn, prefetch, tables, bf16)}[spec["name"]]
result, state, done = dict(spec), {}, 0
try:
    for step in range(12):
        run(step, state)
        torch.cuda.synchronize()
        done += 1
    result["outcome"] = "ok"
except torch.OutOfMemoryError:
    result.update(outcome="oom", oom_step=done)
stats = torch.cuda.memory_stats()
result.update(peak_allocated=stats["allocated_bytes.all.peak"], peak_reserved=stats["reserved_bytes.all.peak"],
              retries=stats["num_alloc_retries"], total=total)
if spec.get("trace"):
    with gzip.open(spec["trace"], "wb") as file:
        pickle.dump(torch.cuda.memory._snapshot(), file)
print("RESULT " + json.dumps(result), flush=True)
