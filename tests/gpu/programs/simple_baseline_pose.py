# SPDX-License-Identifier: Apache-2.0
"""Human keypoints: SimpleBaseline (torchvision ResNet-50 + deconvolutions) with Gaussian heat maps, weighted MSE, fp32; validation PCK with decoded coordinates kept on the CPU."""
import argparse
import logging
import os

import numpy as np
import torch
import torch.nn as nn
import torchvision
from torch.utils.data import DataLoader, Dataset

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
logger = logging.getLogger(__name__)
SMALL = os.environ.get("SMALL") == "1"
JOINTS = 17


class AverageMeter(object):
    def __init__(self):
        self.sum = self.count = 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


class PersonCrops(Dataset):
    def __init__(self, n, height, width, sigma=2):
        self.n, self.h, self.w, self.sigma = n, height, width, sigma

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        hh, hw = self.h // 4, self.w // 4
        joints = torch.rand(JOINTS, 2, generator=g) * torch.tensor([hw - 1.0, hh - 1.0])
        visible = (torch.rand(JOINTS, generator=g) > 0.2).float()
        ys, xs = torch.arange(hh).float()[:, None], torch.arange(hw).float()[None]
        d2 = (xs - joints[:, 0, None, None]) ** 2 + (ys - joints[:, 1, None, None]) ** 2
        target = torch.exp(-d2 / (2 * self.sigma ** 2)) * visible[:, None, None]
        return torch.randn(3, self.h, self.w, generator=g), target, visible, joints


class PoseResNet(nn.Module):
    def __init__(self, arch="resnet50", filters=256):
        super().__init__()
        trunk = getattr(torchvision.models, arch)(weights=None)
        inplanes = trunk.fc.in_features
        self.trunk = nn.Sequential(*list(trunk.children())[:-2])
        layers = []
        for _ in range(3):
            layers += [nn.ConvTranspose2d(inplanes, filters, 4, 2, 1, bias=False), nn.BatchNorm2d(filters, momentum=0.1), nn.ReLU(inplace=True)]
            inplanes = filters
        self.deconv = nn.Sequential(*layers)
        self.final = nn.Conv2d(filters, JOINTS, 1)
        for m in self.deconv.modules():
            if isinstance(m, nn.ConvTranspose2d):
                nn.init.normal_(m.weight, std=0.001)

    def forward(self, x):
        return self.final(self.deconv(self.trunk(x)))


class JointsMSELoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.criterion = nn.MSELoss(reduction="mean")

    def forward(self, output, target, weight):
        b, j = output.shape[:2]
        pred = output.reshape(b, j, -1).split(1, 1)
        gt = target.reshape(b, j, -1).split(1, 1)
        loss = 0
        for k in range(j):
            loss += 0.5 * self.criterion(pred[k].squeeze(1) * weight[:, k, None], gt[k].squeeze(1) * weight[:, k, None])
        return loss / j


def decode(heat):
    b, j, h, w = heat.shape
    idx = heat.reshape(b, j, -1).argmax(2)
    return np.stack([idx % w, idx // w], -1).astype(np.float32)


def validate(loader, model, criterion, device):
    losses = AverageMeter()
    preds, gts, vis = [], [], []
    model.eval()
    with torch.no_grad():
        for image, target, visible, joints in loader:
            output = model(image.to(device))
            loss = criterion(output, target.to(device), visible.to(device))
            losses.update(loss.item(), image.size(0))
            preds.append(decode(output.cpu().numpy()))
            gts.append(joints.numpy())
            vis.append(visible.numpy())
    pred, gt, v = np.concatenate(preds), np.concatenate(gts), np.concatenate(vis) > 0
    pck = (np.linalg.norm(pred - gt, axis=-1)[v] < 5).mean()
    return losses.avg, pck


def main():
    parser = argparse.ArgumentParser(description="train keypoints network")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    if SMALL:
        args.batch_size = min(args.batch_size, 2)
    h, w = (64, 64) if SMALL else (256, 192)
    model = PoseResNet("resnet18", 32) if SMALL else PoseResNet()
    model = model.to(device)
    train_loader = DataLoader(PersonCrops(args.batch_size * (2 if SMALL else 8), h, w), batch_size=args.batch_size, shuffle=True, num_workers=0 if SMALL else 8, pin_memory=device == "cuda")
    valid_loader = DataLoader(PersonCrops(args.batch_size * 3 + 1, h, w), batch_size=args.batch_size, shuffle=False, num_workers=0 if SMALL else 8, pin_memory=device == "cuda")
    criterion = JointsMSELoss().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [1, 2], 0.1)
    best = 0
    for epoch in range(args.epochs):
        losses = AverageMeter()
        model.train()
        for i, (image, target, visible, _) in enumerate(train_loader):
            output = model(image.to(device))
            target = target.to(device, non_blocking=True)
            visible = visible.to(device, non_blocking=True)
            loss = criterion(output, target, visible)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.update(loss.item(), image.size(0))
        scheduler.step()
        vloss, pck = validate(valid_loader, model, criterion, device)
        best = max(best, pck)
        logger.info("epoch %d train %.5f val %.5f PCK %.4f best %.4f", epoch, losses.avg, vloss, pck, best)


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
