# SPDX-License-Identifier: Apache-2.0
"""One trunk, many heads: attributes, an age, a mask, an embedding; losses weighted by learned uncertainty; two learning rates."""
import argparse
import os

import timm
import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"


class MultiTask(nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self.trunk = timm.create_model(backbone, features_only=True)
        channels = self.trunk.feature_info.channels()
        top = channels[-1]
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.attributes = nn.Sequential(nn.Dropout(0.2), nn.Linear(top, 40))
        self.age = nn.Sequential(nn.Linear(top, 128), nn.Mish(), nn.Linear(128, 1))
        self.identity = nn.Linear(top, 512)
        self.classes = nn.Parameter(torch.randn(20000, 512) * 0.01)
        self.decode = nn.ModuleList(nn.Sequential(nn.Conv2d(a + b, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.SiLU()) for a, b in zip(channels[::-1], channels[-2::-1]))
        self.mask = nn.Conv2d(channels[0], 1, 1)
        self.log_var = nn.Parameter(torch.zeros(4))

    def forward(self, x):
        features = self.trunk(x)
        h = self.pool(features[-1]).flatten(1)
        y = features[-1]
        for block, skip in zip(self.decode, features[-2::-1]):
            y = block(torch.cat([F.interpolate(y, size=skip.shape[-2:]), skip], 1))
        cosine = F.linear(F.normalize(self.identity(h)), F.normalize(self.classes))
        return self.attributes(h), self.age(h).squeeze(1), cosine, self.mask(y)


def arcface(cosine, y, margin=0.3, scale=30.0):
    theta = torch.acos(cosine.clamp(-1 + 1e-6, 1 - 1e-6))
    one = F.one_hot(y, cosine.shape[1])
    return F.cross_entropy(scale * torch.where(one.bool(), torch.cos(theta + margin), cosine), y)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=40)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    size = 64 if SMALL else 256
    model = MultiTask("mobilenetv2_050" if SMALL else "gc_efficientnetv2_rw_t").to(device)
    trunk = list(model.trunk.parameters())
    ids = {id(p) for p in trunk}
    optimizer = torch.optim.AdamW([{"params": trunk, "lr": 1e-4}, {"params": [p for p in model.parameters() if id(p) not in ids], "lr": 1e-3}])
    for step in range(5):
        x = torch.randn(args.batch_size, 3, size, size).to(device)
        batch = {
            "attributes": torch.randint(0, 2, (args.batch_size, 40)).float().to(device), "age": (torch.rand(args.batch_size) * 80).to(device),
            "who": torch.randint(0, 20000, (args.batch_size,)).to(device), "mask": torch.randint(0, 2, (args.batch_size, 1, size // 2, size // 2)).float().to(device),
        }
        attributes, age, cosine, mask = model(x)
        losses = torch.stack([F.binary_cross_entropy_with_logits(attributes, batch["attributes"]), F.huber_loss(age, batch["age"], delta=5.0),
                              arcface(cosine, batch["who"]), F.binary_cross_entropy_with_logits(mask, batch["mask"])])
        loss = (losses * torch.exp(-model.log_var) + model.log_var).sum()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        print(step, [round(v, 3) for v in losses.tolist()])
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
