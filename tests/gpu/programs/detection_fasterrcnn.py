# SPDX-License-Identifier: Apache-2.0
"""Detection: torchvision's Faster R-CNN (FPN) with random boxes, the classic loop of the references."""
import argparse
import os

import torch
import torchvision
from torchvision.models.detection import fasterrcnn_resnet50_fpn
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor

SMALL = os.environ.get("SMALL") == "1"
torch.manual_seed(0)
device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")


class Boxes(torch.utils.data.Dataset):
    def __init__(self, n, size):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        h, w = self.size
        image = torch.rand(3, h, w, generator=g)
        corner = torch.rand(12, 2, generator=g) * torch.tensor([w * 0.6, h * 0.6])
        extent = torch.rand(12, 2, generator=g) * torch.tensor([w * 0.3, h * 0.3]) + 10
        boxes = torch.cat([corner, corner + extent], 1)
        return image, {"boxes": boxes, "labels": torch.randint(1, 21, (12,), generator=g), "image_id": torch.tensor([i])}


def collate(batch):
    return tuple(zip(*batch))


def main(args):
    size = (128, 160) if SMALL else (600, 800)
    model = fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None, trainable_backbone_layers=5, min_size=min(size), max_size=max(size))
    model.roi_heads.box_predictor = FastRCNNPredictor(model.roi_heads.box_predictor.cls_score.in_features, 21)
    model.to(device)
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(params, lr=0.0005, momentum=0.9, weight_decay=0.0005)
    loader = torch.utils.data.DataLoader(Boxes(args.batch_size * 5, size), args.batch_size, shuffle=True, num_workers=2, collate_fn=collate)
    model.train()
    for images, targets in loader:
        images = [image.to(device) for image in images]
        targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
        losses = model(images, targets)
        loss = sum(losses.values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print({k: round(v.item(), 3) for k, v in losses.items()})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    main(parser.parse_args())
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
