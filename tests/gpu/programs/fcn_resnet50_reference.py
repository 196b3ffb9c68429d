"""FCN-ResNet50 semantic segmentation, torchvision reference style: aux loss, poly LR, SGD, fp16 GradScaler."""
import argparse
import os
import tempfile
import time

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.models.segmentation import fcn_resnet50


class VOCLike(Dataset):
    def __init__(self, n, crop, num_classes, seed):
        g = torch.Generator().manual_seed(seed)
        self.crop, self.num_classes = crop, num_classes
        self.coarse = torch.randint(0, num_classes, (n, 1, 12, 12), generator=g)

    def __len__(self):
        return len(self.coarse)

    def __getitem__(self, i):
        mask = F.interpolate(self.coarse[i][None].float(), size=(self.crop, self.crop))[0, 0].long()
        image = mask[None].float().repeat(3, 1, 1) / self.num_classes + 0.2 * torch.randn(3, self.crop, self.crop)
        mask[:4] = 255
        return image, mask


class ConfusionMatrix:
    def __init__(self, num_classes):
        self.num_classes = num_classes
        self.mat = None

    def update(self, a, b):
        n = self.num_classes
        if self.mat is None:
            self.mat = torch.zeros((n, n), dtype=torch.int64, device=a.device)
        with torch.inference_mode():
            k = (a >= 0) & (a < n)
            inds = n * a[k].to(torch.int64) + b[k]
            self.mat += torch.bincount(inds, minlength=n ** 2).reshape(n, n)

    def compute(self):
        h = self.mat.float()
        acc_global = torch.diag(h).sum() / h.sum()
        iu = torch.diag(h) / (h.sum(1) + h.sum(0) - torch.diag(h))
        return acc_global.item(), iu.nanmean().item()


def criterion(inputs, target):
    losses = {name: F.cross_entropy(x, target, ignore_index=255) for name, x in inputs.items()}
    if len(losses) == 1:
        return losses["out"]
    return losses["out"] + 0.5 * losses["aux"]


def train_one_epoch(model, optimizer, data_loader, lr_scheduler, device, epoch, scaler):
    model.train()
    for i, (image, target) in enumerate(data_loader):
        start = time.time()
        image, target = image.to(device), target.to(device)
        with torch.amp.autocast(device.type, enabled=scaler is not None, dtype=torch.float16):
            output = model(image)
            loss = criterion(output, target)
        optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()
        lr_scheduler.step()
        if i % 5 == 0:
            print(f"Epoch [{epoch}] [{i}/{len(data_loader)}] loss {loss.item():.4f} "
                  f"lr {optimizer.param_groups[0]['lr']:.5f} time {time.time() - start:.3f}")


def evaluate(model, data_loader, device, num_classes):
    model.eval()
    confmat = ConfusionMatrix(num_classes)
    with torch.inference_mode():
        for image, target in data_loader:
            image, target = image.to(device), target.to(device)
            output = model(image)["out"]
            confmat.update(target.flatten(), output.argmax(1).flatten())
    return confmat.compute()


def main(args):
    torch.manual_seed(0)
    device = torch.device(args.device)
    train_set = VOCLike(args.n_train, args.crop, args.num_classes, 0)
    val_set = VOCLike(args.n_val, args.crop, args.num_classes, 1)
    data_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True, num_workers=args.workers,
                             drop_last=True)
    data_loader_test = DataLoader(val_set, batch_size=1, num_workers=args.workers)

    model = fcn_resnet50(weights=None, weights_backbone=None, num_classes=args.num_classes, aux_loss=True)
    model.to(device)
    params = [
        {"params": [p for p in model.backbone.parameters() if p.requires_grad]},
        {"params": [p for p in model.classifier.parameters() if p.requires_grad]},
        {"params": [p for p in model.aux_classifier.parameters() if p.requires_grad], "lr": args.lr * 10},
    ]
    optimizer = torch.optim.SGD(params, lr=args.lr, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler(device.type) if args.amp else None
    lr_scheduler = torch.optim.lr_scheduler.PolynomialLR(
        optimizer, total_iters=len(data_loader) * args.epochs, power=0.9)

    with tempfile.TemporaryDirectory() as out:
        for epoch in range(args.epochs):
            train_one_epoch(model, optimizer, data_loader, lr_scheduler, device, epoch, scaler)
            acc, miou = evaluate(model, data_loader_test, device, args.num_classes)
            print(f"epoch {epoch}: global correct {acc * 100:.1f} mean IoU {miou * 100:.1f}")
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                        "lr_scheduler": lr_scheduler.state_dict(), "epoch": epoch, "args": args},
                       os.path.join(out, "checkpoint.pth"))


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--device", default="cuda")
    p.add_argument("-b", "--batch-size", type=int, default=8)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--lr", type=float, default=0.02)
    p.add_argument("--crop", type=int, default=480)
    p.add_argument("--num-classes", type=int, default=21)
    p.add_argument("--n-train", type=int, default=128)
    p.add_argument("--n-val", type=int, default=32)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--amp", action=argparse.BooleanOptionalAction, default=True)
    main(p.parse_args())
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
