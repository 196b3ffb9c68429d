#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training programs for `cufit fit`: what they take on a GPU, against what was predicted without one.

`fit_runs.py SPECS.jsonl OUT.jsonl [AT-ONCE]`: every program of SPECS, AT-ONCE (7) at a time, on the GPU; a line each in OUT.
`fit_runs.py '{"model": "timm:resnet50", "batch": 8}'`: one program; under `cufit fit --events DIR --` it is traced.

A spec has `model` and `batch`, and may have: `seq`, `res` (pixels), `precision` (fp32, bf16: all of it, bf16amp, fp16amp), `opt`
(adamw, adam, fused, sgd, sgdm, rmsprop, adagrad, adafactor, lion8: one byte of state per value), `ckpt`, `lora` (rank), `accum`, `steps` (4),
`clip`, `channels_last`, `compile`, `benchmark`, `config` (fields of a transformers configuration or arguments of a builder),
`history` (a file for the allocator's history). `model`: hf:TYPE (of transformers), timm:NAME, tv:NAME, seg:NAME (torchvision), or
own:NAME (own_models below).
"""
import concurrent.futures
import json
import os
import subprocess
import sys

STEPS = 4


def one(text):
    try:
        done = subprocess.run([sys.executable, os.path.abspath(__file__), text], capture_output=True, text=True, timeout=400)
    except subprocess.TimeoutExpired:
        return dict(json.loads(text), failed="took more than 400 s")
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line[7:])
    return dict(json.loads(text), failed=(done.stderr.strip().splitlines() or ["no output"])[-1][:300])


def all_of(specs, out, at_once):
    with open(specs, encoding="utf-8") as file:
        texts = [line.strip() for line in file if line.strip()]
    with open(out, "w", encoding="utf-8") as file, concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for row in pool.map(one, texts):
            file.write(json.dumps(row) + "\n")
            file.flush()


# ---- programs ---------------------------------------------------------------------------------------------------------------

def own_models(torch, nn, F):
    class Recurrent(nn.Module):
        def __init__(self, cell="LSTM", features=512, hidden=1024, layers=2, both=False, dropout=0.0):
            super().__init__()
            self.layers = getattr(nn, cell)(features, hidden, layers, batch_first=True, bidirectional=both, dropout=dropout)
            self.out = nn.Linear(hidden * (2 if both else 1), features)
            self.features = features

        def forward(self, x):
            return self.out(self.layers(x)[0])

        def inputs(self, batch, spec):
            return torch.randn(batch, spec.get("seq", 128), self.features, device="cuda")

    class Words(nn.Module):
        """Embedding, recurrent layers, a projection to a vocabulary."""

        def __init__(self, cell="LSTM", words=20000, features=400, hidden=900, layers=3, dropout=0.2, both=False):
            super().__init__()
            self.words = words
            self.embed = nn.Embedding(words, features)
            self.layers = getattr(nn, cell)(features, hidden, layers, batch_first=True, dropout=dropout, bidirectional=both)
            self.out = nn.Linear(hidden * (2 if both else 1), words)

        def forward(self, x):
            return self.out(self.layers(self.embed(x))[0])

        def inputs(self, batch, spec):
            return torch.randint(0, self.words, (batch, spec.get("seq", 64)), device="cuda")

    class Block(nn.Module):
        def __init__(self, inside, outside, norm):
            super().__init__()
            make = {"batch": nn.BatchNorm2d, "group": lambda width: nn.GroupNorm(8, width)}[norm]
            self.seq = nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1, bias=False), make(outside), nn.SiLU(),
                                     nn.Conv2d(outside, outside, 3, padding=1, bias=False), make(outside), nn.SiLU())

        def forward(self, x):
            return self.seq(x)

    class UNet(nn.Module):
        def __init__(self, widths=(32, 64, 128, 256), norm="batch", channels=3):
            super().__init__()
            self.channels = channels
            self.down = nn.ModuleList(Block(a, b, norm) for a, b in zip((channels,) + tuple(widths), widths))
            self.ups = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(widths, widths[1:]))
            self.merge = nn.ModuleList(Block(2 * a, a, norm) for a in widths[:-1])
            self.out = nn.Conv2d(widths[0], channels, 1)

        def forward(self, x):
            kept = []
            for block in self.down:
                x = block(x if not kept else F.max_pool2d(x, 2))
                kept.append(x)
            for up, merge, skip in reversed(list(zip(self.ups, self.merge, kept))):
                x = merge(torch.cat((up(x), skip), 1))
            return self.out(x)

        def inputs(self, batch, spec):
            return torch.randn(batch, self.channels, spec.get("res", 128), spec.get("res", 128), device="cuda")

    class Volume(nn.Module):
        def __init__(self, widths=(16, 32, 64), frames=16, channels=1):
            super().__init__()
            self.frames, self.channels = frames, channels
            blocks = []
            for a, b in zip((channels,) + tuple(widths), widths):
                blocks += [nn.Conv3d(a, b, 3, padding=1), nn.BatchNorm3d(b), nn.ReLU(), nn.MaxPool3d(2)]
            self.seq = nn.Sequential(*blocks)
            self.out = nn.Linear(widths[-1], 10)

        def forward(self, x):
            return self.out(self.seq(x).mean((2, 3, 4)))

        def inputs(self, batch, spec):
            return torch.randn(batch, self.channels, self.frames, spec.get("res", 64), spec.get("res", 64), device="cuda")

    class Waves(nn.Module):
        """Convolutions over sound, dilated."""

        def __init__(self, width=128, blocks=8):
            super().__init__()
            self.first = nn.Conv1d(1, width, 7, padding=3)
            self.blocks = nn.ModuleList(nn.Sequential(nn.Conv1d(width, width, 3, padding=2 ** i, dilation=2 ** i), nn.GELU(), nn.Conv1d(width, width, 1))
                                        for i in range(blocks))
            self.out = nn.Conv1d(width, 1, 1)

        def forward(self, x):
            x = self.first(x)
            for block in self.blocks:
                x = x + block(x)
            return self.out(x)

        def inputs(self, batch, spec):
            return torch.randn(batch, 1, spec.get("seq", 8192), device="cuda")

    class Encoder(nn.Module):
        def __init__(self, width=512, heads=8, layers=6, hidden=2048):
            super().__init__()
            self.width = width
            self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, heads, hidden, batch_first=True), layers)

        def forward(self, x):
            return self.layers(x)

        def inputs(self, batch, spec):
            return torch.randn(batch, spec.get("seq", 256), self.width, device="cuda")

    class Attended(nn.Module):
        """A U-Net as in diffusion: a step's embedding, attention on the small images, group norm."""

        def __init__(self, width=96, levels=3):
            super().__init__()
            self.time = nn.Sequential(nn.Linear(64, width * 4), nn.SiLU(), nn.Linear(width * 4, width * 4))
            widths = [width * 2 ** i for i in range(levels)]
            self.first = nn.Conv2d(4, width, 3, padding=1)
            self.down, self.up = nn.ModuleList(), nn.ModuleList()
            for i, w in enumerate(widths):
                self.down.append(nn.ModuleList([Block(w if i == 0 else widths[i - 1], w, "group"), nn.Linear(width * 4, w),
                                                nn.MultiheadAttention(w, 8, batch_first=True) if i else None, nn.Conv2d(w, w, 3, 2, 1)]))
            for i, w in reversed(list(enumerate(widths))):
                self.up.append(nn.ModuleList([Block(2 * w, w, "group"), nn.Conv2d(w, widths[max(i - 1, 0)], 1)]))
            self.last = nn.Conv2d(width, 4, 3, padding=1)

        def forward(self, x):
            t = self.time(torch.randn(x.shape[0], 64, device=x.device, dtype=x.dtype))
            x, kept = self.first(x), []
            for block, linear, attention, smaller in self.down:
                x = block(x) + linear(t)[:, :, None, None]
                if attention is not None:
                    rows = x.flatten(2).transpose(1, 2)
                    x = x + attention(rows, rows, rows, need_weights=False)[0].transpose(1, 2).reshape(x.shape)
                kept.append(x)
                x = smaller(x)
            for block, narrow in self.up:
                skip = kept.pop()
                x = narrow(block(torch.cat((F.interpolate(x, size=skip.shape[-2:]), skip), 1)))
            return self.last(x)

        def inputs(self, batch, spec):
            return torch.randn(batch, 4, spec.get("res", 64), spec.get("res", 64), device="cuda")

    return {"recurrent": Recurrent, "words": Words, "unet": UNet, "volume": Volume, "waves": Waves, "encoder": Encoder, "attended": Attended}


# A model, and what gives the arguments and the target of one call.
def build(spec, torch):
    from torch import nn
    from torch.nn import functional as F
    kind, _, name = spec["model"].partition(":")
    batch, config = spec["batch"], spec.get("config", {})
    if kind == "own":
        model = own_models(torch, nn, F)[name](**config)
        return model, lambda: (model.inputs(batch, spec), None)
    if kind == "hf":
        import transformers
        settings = transformers.AutoConfig.for_model(name, **config)
        settings.use_cache = False
        auto = getattr(transformers, spec.get("auto", "AutoModelForCausalLM"))
        model = auto.from_config(settings)
        if spec.get("ckpt"):
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

        def data():
            if "audio" in spec:
                return torch.randn(batch, spec["audio"], device="cuda"), None
            if "res" in spec:
                return torch.randn(batch, 3, spec["res"], spec["res"], device="cuda"), None
            ids = torch.randint(5, min(settings.get_text_config().vocab_size, 30000), (batch, spec["seq"]), device="cuda")
            return ids, ids
        return model, data
    res = spec.get("res", 224)
    if kind == "timm":
        import timm
        model = timm.create_model(name, **config)
        if spec.get("ckpt"):
            model.set_grad_checkpointing()
    elif kind == "seg":
        import torchvision
        model = getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None, **config)
        return model, lambda: (torch.randn(batch, 3, res, res, device="cuda"), torch.randint(0, 21, (batch, res, res), device="cuda"))
    else:
        import torchvision
        model = getattr(torchvision.models, name)(weights=None, **config)
    return model, lambda: (torch.randn(batch, 3, res, res, device="cuda"), torch.randint(0, 1000, (batch,), device="cuda"))


def lion8(torch):
    class Lion8(torch.optim.Optimizer):
        """One byte of state per value, as optimizers of 8 bit keep it."""

        def __init__(self, params, lr=1e-4):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    if not state:
                        state["m"] = torch.zeros_like(p, dtype=torch.int8)
                    m = state["m"].to(p.dtype).mul_(0.9).add_(p.grad, alpha=0.1)
                    p.add_(m.sign(), alpha=-group["lr"])
                    state["m"].copy_(m.clamp_(-127, 127))

    return Lion8


def main(spec):
    import torch
    from torch.nn import functional as F

    torch.manual_seed(0)
    if spec.get("history"):
        torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=4_000_000)
    torch.backends.cudnn.benchmark = bool(spec.get("benchmark"))
    model, data = build(spec, torch)
    precision = spec.get("precision", "fp32")
    model = model.to("cuda", torch.bfloat16 if precision == "bf16" else torch.float32).train()
    if spec.get("channels_last"):
        model = model.to(memory_format=torch.channels_last)
    if spec.get("lora"):
        import peft
        model = peft.get_peft_model(model, peft.LoraConfig(r=spec["lora"], target_modules="all-linear"))
        if spec.get("ckpt"):
            model.enable_input_require_grads()
    trained = [p for p in model.parameters() if p.requires_grad]
    optim = torch.optim
    optimizer = {"adamw": lambda: optim.AdamW(trained), "adam": lambda: optim.Adam(trained), "fused": lambda: optim.AdamW(trained, fused=True),
                 "sgd": lambda: optim.SGD(trained, lr=0.01), "sgdm": lambda: optim.SGD(trained, lr=0.01, momentum=0.9),
                 "rmsprop": lambda: optim.RMSprop(trained), "adagrad": lambda: optim.Adagrad(trained), "adafactor": lambda: optim.Adafactor(trained),
                 "lion8": lambda: lion8(torch)(trained)}[spec.get("opt", "adamw")]()
    amp = {"bf16amp": torch.bfloat16, "fp16amp": torch.float16}.get(precision)
    # With the usual 65536 gradients of random weights overflow: as few steps as are run here would all be skipped.
    scaler = torch.amp.GradScaler("cuda", init_scale=256.0, enabled=precision == "fp16amp")
    run = torch.compile(model) if spec.get("compile") else model
    for _ in range(spec.get("steps", STEPS)):
        for _ in range(spec.get("accum", 1)):
            x, y = data()
            if precision == "bf16" and x.is_floating_point():
                x = x.bfloat16()
            if spec.get("channels_last") and x.dim() == 4:
                x = x.contiguous(memory_format=torch.channels_last)
            with torch.autocast("cuda", amp, enabled=amp is not None):
                if spec["model"].startswith("hf:") and y is not None:
                    loss = run(input_ids=x, labels=y).loss
                else:
                    out = run(x)
                    out = out["out"] if isinstance(out, dict) and "out" in out else getattr(out, "logits", getattr(out, "last_hidden_state", out))
                    out = out[0] if isinstance(out, tuple) else out
                    loss = out.square().mean() if y is None else F.cross_entropy(out, y)
            scaler.scale(loss / spec.get("accum", 1)).backward()
        if spec.get("clip"):
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    history = spec.pop("history", None)
    if history:
        import pickle
        with open(history, "wb") as file:
            pickle.dump(torch.cuda.memory._snapshot(), file)
    print("RESULT " + json.dumps(dict(spec, peak_allocated=stats["allocated_bytes.all.peak"], peak_reserved=stats["reserved_bytes.all.peak"])))


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        main(json.loads(sys.argv[1]))
    elif len(sys.argv) in (3, 4):
        all_of(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) == 4 else 7)
    else:
        sys.exit(__doc__)
