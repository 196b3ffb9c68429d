#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/record_pairs.py OUT: small training programs at four batch sizes each, the first two of them recorded.

For `cufit fit --from`: what the two recordings say of the other two is held against what was measured. Writes
OUT/MODEL-BATCH.pkl.gz and OUT/runs.jsonl (each run measured without a recording). Needs one GPU with 30 GB free, torch,
transformers, torchvision and timm; four runs at a time.
`record_pairs.py '{"model": "gpt2", "batch": 8, "trace": "FILE"}'` makes one run.
"""
import concurrent.futures
import gzip
import json
import os
import pickle
import subprocess
import sys

RUNS = [("gpt2", (4, 8, 16, 32), "fp32"), ("bert", (4, 8, 16, 32), "amp-bf16"), ("llama", (4, 8, 16, 32), "amp-bf16"),
        ("resnet50", (8, 16, 32, 64), "fp32"), ("timm:convnext_tiny", (8, 16, 32, 64), "amp-bf16"),
        ("timm:vit_small_patch16_224", (8, 16, 32, 64), "amp-bf16"), ("lstm", (8, 16, 32, 64), "fp32")]


def one(spec):
    done = subprocess.run([sys.executable, os.path.abspath(__file__), json.dumps(spec)], capture_output=True, text=True, timeout=300)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line[7:])
    sys.exit(f"{spec}: {done.stderr[-400:]}")


def record(out):
    specs = [{"model": model, "batch": batch, "precision": precision} for model, batches, precision in RUNS for batch in batches]
    traced = [{"model": model, "batch": batch, "precision": precision, "trace": f"{out}/{model.replace(':', '_')}-{batch}.pkl.gz"}
              for model, batches, precision in RUNS for batch in batches[:2]]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(one, specs))
        list(pool.map(one, traced))
    with open(f"{out}/runs.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


if len(sys.argv) != 2:
    sys.exit(__doc__)
if not sys.argv[1].startswith("{"):
    record(sys.argv[1])
    sys.exit()

spec = json.loads(sys.argv[1])
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
if spec.get("trace"):
    torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=4_000_000)
batch, name, dev = spec["batch"], spec["model"], "cuda"


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.out = nn.LSTM(512, 1024, 2, batch_first=True), nn.Linear(1024, 512)

    def forward(self, x):
        return self.out(self.layers(x)[0])


def build():
    if name == "lstm":
        return Recurrent()
    if name.startswith("timm:"):
        import timm
        return timm.create_model(name[5:])
    if name == "resnet50":
        import torchvision.models
        return torchvision.models.resnet50(weights=None)
    import transformers as T
    if name == "gpt2":
        return T.GPT2LMHeadModel(T.GPT2Config(n_layer=6))
    if name == "bert":
        return T.BertForMaskedLM(T.BertConfig(num_hidden_layers=6))
    return T.LlamaForCausalLM(T.LlamaConfig(vocab_size=32000, hidden_size=768, intermediate_size=2048, num_hidden_layers=8,
                                            num_attention_heads=12))


def data():
    if name in ("gpt2", "bert", "llama"):
        return torch.randint(0, 30000, (batch, 256), device=dev), None
    if name == "lstm":
        return torch.randn(batch, 128, 512, device=dev), None
    return torch.randn(batch, 3, 224, 224, device=dev), torch.randint(0, 1000, (batch,), device=dev)


def loss_of(x, y):
    if name in ("gpt2", "bert", "llama"):
        return model(input_ids=x, labels=x).loss
    return model(x).square().mean() if y is None else F.cross_entropy(model(x), y)


model = build().to(dev).train()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    x, y = data()
    with torch.autocast("cuda", torch.bfloat16, enabled=spec["precision"] == "amp-bf16"):
        loss = loss_of(x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
stats = torch.cuda.memory_stats()
if spec.get("trace"):
    with gzip.open(spec.pop("trace"), "wb") as file:
        pickle.dump(torch.cuda.memory._snapshot(), file)
print("RESULT " + json.dumps(dict(spec, peak_allocated=stats["allocated_bytes.all.peak"], peak_reserved=stats["reserved_bytes.all.peak"])))
