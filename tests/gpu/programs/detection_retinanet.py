# SPDX-License-Identifier: Apache-2.0
"""RetinaNet on a ResNet-18 FPN with mixed precision; the number of boxes per image is fixed."""
import argparse
import os

import torch
from torchvision.models.detection import RetinaNet
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
from torchvision.ops.feature_pyramid_network import LastLevelP6P7

SMALL = os.environ.get("SMALL") == "1"
torch.manual_seed(0)
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=16)
args = parser.parse_args()
device = "cuda" if torch.cuda.is_available() else "cpu"
size = 128 if SMALL else 512

backbone = resnet_fpn_backbone(backbone_name="resnet18", weights=None, trainable_layers=5, returned_layers=[2, 3, 4], extra_blocks=LastLevelP6P7(256, 256), norm_layer=torch.nn.BatchNorm2d)
anchors = AnchorGenerator(tuple((x, int(x * 2 ** (1 / 3)), int(x * 2 ** (2 / 3))) for x in [32, 64, 128, 256, 512]), ((0.5, 1.0, 2.0),) * 5)
model = RetinaNet(backbone, num_classes=20, anchor_generator=anchors, min_size=size, max_size=size).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)


def sample():
    images = [torch.rand(3, size, size, device=device) for _ in range(args.batch_size)]
    targets = []
    for _ in images:
        xy = torch.rand(8, 2) * size * 0.5
        wh = torch.rand(8, 2) * size * 0.4 + 12
        targets.append({"boxes": torch.cat([xy, xy + wh], 1).to(device), "labels": torch.randint(0, 20, (8,), device=device)})
    return images, targets


model.train()
for step in range(5):
    images, targets = sample()
    with torch.autocast(device_type=device, dtype=torch.bfloat16, enabled=device == "cuda"):
        losses = model(images, targets)
        loss = losses["classification"] + losses["bbox_regression"]
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    print(step, loss.item())

model.eval()
with torch.no_grad():
    print(len(model(sample()[0][:2])))
if torch.cuda.is_available():
    s = torch.cuda.memory_stats()
    print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
