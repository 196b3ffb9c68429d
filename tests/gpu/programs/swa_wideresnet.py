# SPDX-License-Identifier: Apache-2.0
"""WideResNet on CIFAR-sized images with stochastic weight averaging (torch.optim.swa_utils)."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=128)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--swa-start", type=int, default=1)
args = parser.parse_args()

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(1)
torch.backends.cudnn.benchmark = True
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True


class FakeCifar(Dataset):
    def __init__(self, n, train=True):
        g = torch.Generator().manual_seed(int(train))
        self.data = torch.randint(0, 256, (n, 3, 32, 32), dtype=torch.uint8, generator=g)
        self.targets = torch.randint(0, 100, (n,), generator=g)
        self.train = train

    def __len__(self):
        return len(self.data)

    def __getitem__(self, idx):
        img = self.data[idx].float() / 255
        if self.train:
            img = F.pad(img, (4, 4, 4, 4))
            dy, dx = torch.randint(0, 9, (2,)).tolist()
            img = img[:, dy:dy + 32, dx:dx + 32]
            if torch.rand(1) < 0.5:
                img = img.flip(-1)
        return (img - 0.5) / 0.25, self.targets[idx]


class WideBasic(nn.Module):
    def __init__(self, cin, cout, stride, drop):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(cin)
        self.conv1 = nn.Conv2d(cin, cout, 3, padding=1, bias=False)
        self.drop = nn.Dropout(drop)
        self.bn2 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, stride, 1, bias=False)
        self.short = nn.Conv2d(cin, cout, 1, stride, bias=False) if stride != 1 or cin != cout else nn.Identity()

    def forward(self, x):
        out = self.drop(self.conv1(F.relu(self.bn1(x))))
        out = self.conv2(F.relu(self.bn2(out)))
        return out + self.short(x)


class WideResNet(nn.Module):
    def __init__(self, depth=28, widen=10, classes=100, drop=0.3):
        super().__init__()
        n = (depth - 4) // 6
        w = [16, 16 * widen, 32 * widen, 64 * widen]
        self.conv = nn.Conv2d(3, w[0], 3, padding=1, bias=False)
        blocks, cin = [], w[0]
        for i, c in enumerate(w[1:]):
            for j in range(n):
                blocks.append(WideBasic(cin, c, 2 if i > 0 and j == 0 else 1, drop))
                cin = c
        self.blocks = nn.Sequential(*blocks)
        self.bn = nn.BatchNorm2d(cin)
        self.fc = nn.Linear(cin, classes)

    def forward(self, x):
        x = F.relu(self.bn(self.blocks(self.conv(x))))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


def test(net, loader):
    net.eval()
    outs, ys = [], []
    with torch.inference_mode():
        for x, y in loader:
            x = x.to(device, memory_format=torch.channels_last)
            outs.append(net(x))
            ys.append(y.to(device))
    outs, ys = torch.cat(outs), torch.cat(ys)
    return F.cross_entropy(outs, ys).item(), (outs.argmax(-1) == ys).float().mean().item() * 100


train_set, test_set = FakeCifar(48 if SMALL else 1024), FakeCifar(32 if SMALL else 2000, False)
bs = min(args.batch_size, 8) if SMALL else args.batch_size
train_loader = DataLoader(train_set, bs, shuffle=True, num_workers=0 if SMALL else 4, pin_memory=device == "cuda", drop_last=True)
test_loader = DataLoader(test_set, 16 if SMALL else 500, num_workers=0 if SMALL else 2)

net = WideResNet(10 if SMALL else 28, 1 if SMALL else 10).to(device, memory_format=torch.channels_last)
swa_net = AveragedModel(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)
swa_scheduler = SWALR(optimizer, swa_lr=0.01, anneal_epochs=1)

for epoch in range(args.epochs):
    net.train()
    for x, y in train_loader:
        x = x.to(device, non_blocking=True, memory_format=torch.channels_last)
        y = y.to(device, non_blocking=True)
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    if epoch >= args.swa_start:
        swa_net.update_parameters(net)
        swa_scheduler.step()
    else:
        scheduler.step()
    print("epoch", epoch, "loss", loss.item(), "test", test(net, test_loader))

update_bn(train_loader, swa_net, device=device)
print("swa", test(swa_net, test_loader))

if torch.cuda.is_available():
    s = torch.cuda.memory_stats()
    print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
