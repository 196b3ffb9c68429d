"""SSD300-VGG16 from torchvision with the reference engine (warm-up schedule, MetricLogger reduced), plain fp32."""
import math
import os
import sys
import tempfile
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from torchvision.models.detection import ssd300_vgg16
from torchvision.ops import box_iou

NUM_CLASSES = 7
N_TRAIN, N_VAL = 640, 96
BATCH, EPOCHS = 32, 2


class FakeVOC(Dataset):
    def __init__(self, n, seed):
        self.n, self.seed = n, seed

    def __len__(self):
        return self.n

    def __getitem__(self, idx):
        rng = np.random.default_rng(self.seed * 100000 + idx)
        h, w = int(rng.integers(250, 420)), int(rng.integers(250, 500))
        img = np.full((h, w, 3), rng.integers(0, 100), np.uint8)
        boxes, labels = [], []
        for _ in range(rng.integers(1, 9)):
            bw, bh = int(rng.integers(20, w // 2)), int(rng.integers(20, h // 2))
            x, y = int(rng.integers(0, w - bw)), int(rng.integers(0, h - bh))
            c = int(rng.integers(1, NUM_CLASSES))
            img[y:y + bh, x:x + bw] = (c * 35, 255 - c * 30, 128)
            boxes.append([x, y, x + bw, y + bh])
            labels.append(c)
        target = {"boxes": torch.tensor(boxes, dtype=torch.float32), "labels": torch.tensor(labels),
                  "image_id": torch.tensor([idx])}
        return torch.from_numpy(img).permute(2, 0, 1).float() / 255, target


def collate_fn(batch):
    return tuple(zip(*batch))


def train_one_epoch(model, optimizer, data_loader, device, epoch, print_freq):
    model.train()
    lr_scheduler = None
    if epoch == 0:
        warmup_iters = min(1000, len(data_loader) - 1)
        lr_scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1.0 / 1000, total_iters=warmup_iters)
    for i, (images, targets) in enumerate(data_loader):
        images = list(image.to(device) for image in images)
        targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
        loss_dict = model(images, targets)
        losses = sum(loss for loss in loss_dict.values())
        loss_value = losses.item()
        if not math.isfinite(loss_value):
            print(f"Loss is {loss_value}, stopping training")
            sys.exit(1)
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
        if lr_scheduler is not None:
            lr_scheduler.step()
        if i % print_freq == 0:
            print(f"Epoch [{epoch}] [{i}/{len(data_loader)}] lr {optimizer.param_groups[0]['lr']:.6f} loss {loss_value:.4f} "
                  + " ".join(f"{k} {v.item():.4f}" for k, v in loss_dict.items()))


@torch.inference_mode()
def evaluate(model, data_loader, device):
    model.eval()
    cpu_device = torch.device("cpu")
    hits, total = 0, 0
    t = time.time()
    for images, targets in data_loader:
        images = list(img.to(device) for img in images)
        outputs = model(images)
        outputs = [{k: v.to(cpu_device) for k, v in o.items()} for o in outputs]
        for o, tgt in zip(outputs, targets):
            keep = o["scores"] > 0.05
            if keep.any():
                hits += (box_iou(tgt["boxes"], o["boxes"][keep]).max(1).values > 0.5).sum().item()
            total += len(tgt["boxes"])
    print(f"recall@0.5 {hits / max(total, 1):.4f} in {time.time() - t:.1f}s")


def main():
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = ssd300_vgg16(weights=None, weights_backbone=None, num_classes=NUM_CLASSES)
    model.to(device)
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(params, lr=0.002, momentum=0.9, weight_decay=0.0005)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[80, 110], gamma=0.1)
    data_loader = DataLoader(FakeVOC(N_TRAIN, 0), batch_size=BATCH, shuffle=True, num_workers=2, collate_fn=collate_fn)
    data_loader_test = DataLoader(FakeVOC(N_VAL, 1), batch_size=BATCH // 2, num_workers=2, collate_fn=collate_fn)
    out = tempfile.mkdtemp()
    for epoch in range(EPOCHS):
        train_one_epoch(model, optimizer, data_loader, device, epoch, print_freq=5)
        scheduler.step()
        evaluate(model, data_loader_test, device)
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch},
                   os.path.join(out, f"model_{epoch}.pth"))


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
