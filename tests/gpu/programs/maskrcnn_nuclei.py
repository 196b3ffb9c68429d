import argparse
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from torchvision.models.detection import maskrcnn_resnet50_fpn
from torchvision.ops import box_iou


class NucleiDataset(Dataset):
    """Bright ellipses on a noisy background, one mask for each."""

    def __init__(self, n, size, seed):
        self.n, self.size, self.seed = n, size, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng(self.seed * 100003 + i)
        s = self.size
        image = rng.normal(0.2, 0.05, (s, s)).astype(np.float32)
        yy, xx = np.mgrid[0:s, 0:s].astype(np.float32)
        masks, boxes = [], []
        for _ in range(rng.integers(4, 16)):
            a, b = rng.uniform(s * 0.03, s * 0.09, 2)
            cx, cy = rng.uniform(s * 0.1, s * 0.9, 2)
            m = ((xx - cx) / a) ** 2 + ((yy - cy) / b) ** 2 < 1
            masks.append(m)
            boxes.append([cx - a, cy - b, cx + a, cy + b])
            image[m] += rng.uniform(0.2, 0.6)
        image = torch.from_numpy(image).expand(3, -1, -1).clone()
        target = {
            "boxes": torch.tensor(np.array(boxes), dtype=torch.float32).clamp_(0, s),
            "labels": torch.ones(len(boxes), dtype=torch.int64),
            "masks": torch.from_numpy(np.stack(masks)).to(torch.uint8),
            "image_id": torch.tensor(i),
        }
        return image, target


def collate(batch):
    return tuple(zip(*batch))


def train_one_epoch(model, optimizer, loader, device, epoch, warmup):
    model.train()
    scheduler = None
    if epoch == 0 and warmup:
        scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.01, total_iters=min(warmup, len(loader)))
    for it, (images, targets) in enumerate(loader):
        images = [im.to(device) for im in images]
        targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
        loss_dict = model(images, targets)
        loss = sum(loss_dict.values())
        if not torch.isfinite(loss):
            print("loss is not finite, skipping", {k: v.item() for k, v in loss_dict.items()})
            optimizer.zero_grad()
            continue
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        if it % 10 == 0:
            print(f"epoch {epoch} it {it}/{len(loader)} loss {loss.item():.3f} "
                  + " ".join(f"{k} {v.item():.3f}" for k, v in loss_dict.items()), flush=True)


@torch.inference_mode()
def evaluate(model, loader, device):
    model.eval()
    found, total, dice = 0, 0, []
    for images, targets in loader:
        outputs = model([im.to(device) for im in images])
        outputs = [{k: v.cpu() for k, v in o.items()} for o in outputs]
        for out, tgt in zip(outputs, targets):
            total += len(tgt["boxes"])
            if len(out["boxes"]) == 0:
                continue
            iou = box_iou(tgt["boxes"], out["boxes"])
            best, j = iou.max(1)
            found += int((best > 0.5).sum())
            for k in torch.nonzero(best > 0.5).flatten().tolist():
                p, t = out["masks"][j[k], 0] > 0.5, tgt["masks"][k].bool()
                dice.append(2 * (p & t).sum().item() / max(1, (p.sum() + t.sum()).item()))
    return found / max(1, total), float(np.mean(dice)) if dice else 0.0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=6)
    p.add_argument("--size", type=int, default=512)
    p.add_argument("--train", type=int, default=132)
    p.add_argument("--val", type=int, default=24)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--workers", type=int, default=4)
    args = p.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)

    train_loader = DataLoader(NucleiDataset(args.train, args.size, 1), args.batch_size, shuffle=True,
                              num_workers=args.workers, collate_fn=collate)
    val_loader = DataLoader(NucleiDataset(args.val, args.size, 2), 2, num_workers=args.workers, collate_fn=collate)
    model = maskrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=2, min_size=args.size,
                                  max_size=args.size, box_detections_per_img=50).to(device)
    params = [q for q in model.parameters() if q.requires_grad]
    optimizer = torch.optim.SGD(params, lr=0.01, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.3)
    for epoch in range(args.epochs):
        start = time.time()
        train_one_epoch(model, optimizer, train_loader, device, epoch, warmup=20)
        scheduler.step()
        recall, dice = evaluate(model, val_loader, device)
        print(f"epoch {epoch} recall@.5 {recall:.3f} dice {dice:.3f} ({time.time() - start:.1f}s)")

    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
