# SPDX-License-Identifier: Apache-2.0
"""CLIP from scratch: a small ViT and a text transformer, a large matrix of similarities, learned temperature."""
import argparse
import os

import numpy as np
import timm
import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"


class TextTower(nn.Module):
    def __init__(self, vocab=49408, length=77, width=384, layers=8, heads=6, out=512):
        super().__init__()
        self.token = nn.Embedding(vocab, width)
        self.position = nn.Parameter(torch.empty(length, width).normal_(std=0.01))
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, heads, width * 4, 0.0, "gelu", batch_first=True, norm_first=True) for _ in range(layers))
        self.norm, self.proj = nn.LayerNorm(width), nn.Linear(width, out, bias=False)
        self.register_buffer("mask", torch.full((length, length), float("-inf")).triu(1), persistent=False)

    def forward(self, ids):
        x = self.token(ids) + self.position
        for layer in self.layers:
            x = layer(x, src_mask=self.mask)
        x = self.norm(x)
        return self.proj(x[torch.arange(len(x), device=x.device), ids.argmax(-1)])


class CLIP(nn.Module):
    def __init__(self, out=512):
        super().__init__()
        self.image = timm.create_model("vit_tiny_patch16_224" if SMALL else "vit_small_patch32_224", num_classes=out)
        self.text = TextTower(out=out, layers=2 if SMALL else 8)
        self.scale = nn.Parameter(torch.ones([]) * np.log(1 / 0.07))

    def forward(self, image, ids):
        return F.normalize(self.image(image), dim=-1), F.normalize(self.text(ids), dim=-1), self.scale.exp()


parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=640)
args = parser.parse_args()
model = CLIP().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.2)
pool = torch.randint(0, 256, (64, 3, 224, 224), dtype=torch.uint8)
for step in range(4):
    image = pool[torch.randint(0, 64, (args.batch_size,))].to(device).float().div_(127.5).sub_(1)
    ids = torch.randint(1, 49000, (args.batch_size, 77), device=device)
    ids[:, 76] = 49407
    with torch.autocast(device, dtype=torch.bfloat16):
        a, b, scale = model(image, ids)
        logits = scale * a @ b.t()
    labels = torch.arange(len(logits), device=device)
    loss = (F.cross_entropy(logits.float(), labels) + F.cross_entropy(logits.float().t(), labels)) / 2
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        model.scale.clamp_(0, np.log(100))
    print(step, loss.item())

if torch.cuda.is_available():
    s = torch.cuda.memory_stats()
    print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
