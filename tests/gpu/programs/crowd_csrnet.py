"""CSRNet crowd counting (VGG-16 front end, dilated back end).

Training uses random crops, validation counts heads on whole frames.
"""
import argparse
import time

import numpy as np
import torch
import torch.nn as nn
from scipy.ndimage import gaussian_filter
from torch.utils.data import DataLoader, Dataset


class CrowdFrames(Dataset):
    """Frames of several cameras; every camera has its own resolution."""

    CAMERAS = [(576, 768), (720, 1024), (768, 1024), (680, 1016)]

    def __init__(self, n, train, crop=(512, 640), seed=0):
        self.n = n
        self.train = train
        self.crop = crop
        self.seed = seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.RandomState(self.seed + i)
        h, w = self.crop if self.train else self.CAMERAS[rng.randint(len(self.CAMERAS))]
        img = rng.rand(3, h, w).astype(np.float32)
        density = np.zeros((h // 8, w // 8), dtype=np.float32)
        heads = rng.randint(20, 300)
        ys = rng.randint(0, h // 8, heads)
        xs = rng.randint(0, w // 8, heads)
        np.add.at(density, (ys, xs), 1.0)
        density = gaussian_filter(density, 2)
        return torch.from_numpy(img), torch.from_numpy(density)[None]


def make_layers(cfg, in_channels=3, dilation=1):
    layers = []
    for v in cfg:
        if v == "M":
            layers.append(nn.MaxPool2d(2, 2))
        else:
            layers += [
                nn.Conv2d(in_channels, v, 3, padding=dilation, dilation=dilation),
                nn.ReLU(inplace=True),
            ]
            in_channels = v
    return nn.Sequential(*layers)


class CSRNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.frontend = make_layers([64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512])
        self.backend = make_layers([512, 512, 512, 256, 128, 64], in_channels=512, dilation=2)
        self.output = nn.Conv2d(64, 1, 1)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.normal_(m.weight, std=0.01)
                nn.init.zeros_(m.bias)

    def forward(self, x):
        return self.output(self.backend(self.frontend(x)))


def train(loader, model, criterion, optimizer, epoch):
    model.train()
    losses = 0.0
    start = time.time()
    for i, (img, target) in enumerate(loader):
        img = img.cuda()
        target = target.cuda()
        output = model(img)
        loss = criterion(output, target)
        losses += loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 10 == 0:
            print(f"epoch {epoch} [{i}/{len(loader)}] loss {losses / (i + 1):.4f} {time.time() - start:.1f}s")


def validate(loader, model):
    model.eval()
    mae = 0
    with torch.no_grad():
        for img, target in loader:
            output = model(img.cuda())
            mae += abs(output.sum().item() - target.sum().item())
    mae = mae / len(loader)
    print(f" * MAE {mae:.3f}")
    return mae


def main():
    parser = argparse.ArgumentParser(description="PyTorch CSRNet")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=1e-6)
    parser.add_argument("--num-train", type=int, default=400)
    parser.add_argument("--num-val", type=int, default=40)
    parser.add_argument("--workers", type=int, default=4)
    args = parser.parse_args()

    torch.manual_seed(0)
    train_loader = DataLoader(CrowdFrames(args.num_train, True), batch_size=args.batch_size,
                              shuffle=True, num_workers=args.workers)
    val_loader = DataLoader(CrowdFrames(args.num_val, False, seed=10 ** 6), batch_size=1,
                            num_workers=args.workers)

    model = CSRNet().cuda()
    criterion = nn.MSELoss(reduction="sum").cuda()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.95, weight_decay=5e-4)
    best = float("inf")
    for epoch in range(args.epochs):
        train(train_loader, model, criterion, optimizer, epoch)
        mae = validate(val_loader, model)
        best = min(best, mae)
        print(f" * best MAE {best:.3f}")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
