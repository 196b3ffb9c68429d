#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/oom_workload.py CAUSE [LIMIT_GIB]: one program per cause that runs out of GPU memory for that cause alone.

Written as users write training scripts, so that `cufit mem record -- python oom_workload.py CAUSE` gives a snapshot whose
root cause is known. Needs one GPU; LIMIT_GIB (2) is set as a memory fraction, so that the programs stay small.
"""
import os
import subprocess
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

limit_gib = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0
device = torch.device("cuda")


def limit(gib=None):
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction((gib or limit_gib) * (1 << 30) / total)


class Block(nn.Module):
    def __init__(self, width, heads, naive=False):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads, self.naive = heads, naive

    def attention(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        if self.naive:
            scores = q @ k.transpose(-2, -1) / (c // self.heads) ** 0.5
            y = scores.softmax(dim=-1) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, c))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    def __init__(self, width=384, layers=6, heads=6, vocabulary=8192, naive=False):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, naive) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def batch(size, length, vocabulary=8192):
    return torch.randint(0, vocabulary, (size, length), device=device)


def loss_of(model, tokens):
    logits = model(tokens)
    return F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1))


def train(model, optimizer, batches):
    for tokens in batches:
        loss = loss_of(model, tokens)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def setup(**settings):
    torch.manual_seed(0)
    model = Model(**settings).to(device)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4)


def activation_peak():
    limit()
    model, optimizer = setup()
    train(model, optimizer, (batch(64, 512) for _ in range(4)))


def oversized_input():
    limit()
    model, optimizer = setup()
    lengths = [128] * 9 + [2600] + [128] * 3
    train(model, optimizer, (batch(8, length) for length in lengths))


def fragmentation():
    if limit_gib > 0:
        limit()
    model, optimizer = setup()
    generator = torch.Generator().manual_seed(3)
    lengths = [int(torch.randint(90, 640, (1,), generator=generator)) for _ in range(40)]
    train(model, optimizer, (batch(8, length) for length in lengths))


def attention_quadratic():
    limit()
    model, optimizer = setup(naive=True)
    train(model, optimizer, (batch(2, 2048) for _ in range(4)))


def weights_exceed_capacity():
    limit()
    Model(width=2048, layers=16, heads=16).to(device)


def optimizer_state():
    limit()
    model, optimizer = setup(width=1024, layers=12, heads=16)
    train(model, optimizer, (batch(1, 64) for _ in range(4)))


def graph_retained():
    limit()
    model, optimizer = setup()
    total = 0
    for _ in range(60):
        loss = loss_of(model, batch(8, 128))
        loss.backward(retain_graph=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        total += loss


def tensors_kept():
    limit()
    model, optimizer = setup()
    outputs = []
    for _ in range(60):
        tokens = batch(8, 128)
        logits = model(tokens)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), tokens.reshape(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        outputs.append(logits.detach())


def eval_without_no_grad():
    limit()
    model, optimizer = setup()
    train(model, optimizer, (batch(8, 128) for _ in range(6)))
    model.eval()

    def validate():
        losses = []
        for _ in range(60):
            losses.append(loss_of(model, batch(8, 128)))
        return torch.stack(losses).mean()

    validate()


def decode_spike():
    limit()
    decoder = nn.Sequential(*[nn.Conv2d(64, 64, 3, padding=1) for _ in range(3)]).to(device)
    unet = nn.Sequential(*[nn.Conv2d(64, 64, 3, padding=1) for _ in range(8)]).to(device)
    with torch.no_grad():
        latent = torch.randn(1, 64, 96, 96, device=device)
        for _ in range(20):
            latent = unet(latent)
        image = F.interpolate(latent, scale_factor=24)
        decoder(image)


def stale_reference():
    limit()
    models = {}
    for name in ("small", "base", "final"):  # the dictionary keeps the earlier ones alive
        model, optimizer = setup(width=768, layers=6, heads=12)
        train(model, optimizer, (batch(2, 64) for _ in range(3)))
        models[name] = (model, optimizer)


def cudagraph_pool():
    limit()
    model = Model().to(device).eval()
    graphs = []
    with torch.no_grad():
        for length in range(128, 2048, 64):
            tokens = batch(8, length)
            model(tokens)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                logits = model(tokens)
            graphs.append((graph, tokens, logits))


def autotune_workspace():
    limit(1.2)
    torch.backends.cudnn.benchmark = True
    model = nn.Sequential(*[nn.Conv2d(256, 256, 3, padding=1) for _ in range(4)]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for size in (48, 64, 80, 96):
        model(torch.randn(8, 256, size, size, device=device)).mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def other_process():
    code = ("import torch, time; free, total = torch.cuda.mem_get_info(); kept = torch.empty(free - (3 << 29), dtype=torch.uint8, "
            "device='cuda'); print('held', flush=True); time.sleep(60)")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("CUFIT_") and key != "PYTHONPATH"}
    other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment)
    other.stdout.readline()
    try:
        model, optimizer = setup()
        train(model, optimizer, (batch(48, 512) for _ in range(4)))
    finally:
        other.kill()


def survives():
    limit()
    model, optimizer = setup()
    train(model, optimizer, (batch(4, 128) for _ in range(6)))
    time.sleep(0)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
