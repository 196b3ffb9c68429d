# SPDX-License-Identifier: Apache-2.0
"""Neural style: the pixels are the parameters, VGG19 is frozen, Gram matrices, total variation."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision.models import vgg19

SMALL = os.environ.get("SMALL") == "1"
torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--size", type=int, default=64 if SMALL else 400)
args = parser.parse_args()

STYLE, CONTENT = [0, 5, 10, 19, 28], [21]


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = vgg19(weights=None).features[:29].eval()
        for i, layer in enumerate(self.layers):
            if isinstance(layer, nn.ReLU):
                self.layers[i] = nn.ReLU(inplace=False)
            if isinstance(layer, nn.MaxPool2d):
                self.layers[i] = nn.AvgPool2d(2, 2)
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(-1, 1, 1))

    def forward(self, x):
        x = (x - self.mean) / self.std
        found = {}
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i in STYLE or i in CONTENT:
                found[i] = x
        return found


def gram(x):
    b, c, h, w = x.shape
    f = x.view(b, c, h * w)
    return f @ f.transpose(1, 2) / (c * h * w)


vgg = Features().to(device).requires_grad_(False)
content = torch.rand(args.batch_size, 3, args.size, args.size, device=device)
style = torch.rand(1, 3, args.size, args.size, device=device)
with torch.no_grad():
    style_grams = {i: gram(f) for i, f in vgg(style).items() if i in STYLE}
    content_features = {i: f for i, f in vgg(content).items() if i in CONTENT}

image = content.clone().requires_grad_(True)
optimizer = torch.optim.Adam([image], lr=0.02)
for step in range(6):
    found = vgg(image)
    c_loss = sum(F.mse_loss(found[i], content_features[i]) for i in CONTENT)
    s_loss = sum(F.mse_loss(gram(found[i]), style_grams[i].expand(args.batch_size, -1, -1)) for i in STYLE)
    tv = (image[..., 1:] - image[..., :-1]).abs().mean() + (image[..., 1:, :] - image[..., :-1, :]).abs().mean()
    loss = c_loss + 1e6 * s_loss + 0.1 * tv
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        image.clamp_(0, 1)
    print(step, c_loss.item(), s_loss.item())

if torch.cuda.is_available():
    s = torch.cuda.memory_stats()
    print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
