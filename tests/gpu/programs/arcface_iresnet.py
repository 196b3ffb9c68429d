"""ArcFace training of iresnet50 with a large identity head (insightface style), fp16 backbone + fp32 head, SGD."""
import argparse
import logging
import math
import os
import tempfile
import time

import torch
from torch import nn
from torch.nn.functional import linear, normalize
from torch.utils.data import DataLoader, Dataset

ap = argparse.ArgumentParser()
ap.add_argument("--batch_size", type=int, default=128)
ap.add_argument("--num_classes", type=int, default=85742)
ap.add_argument("--embedding_size", type=int, default=512)
ap.add_argument("--layers", type=int, nargs=4, default=[3, 4, 14, 3])
ap.add_argument("--width", type=int, default=64)
ap.add_argument("--n_train", type=int, default=3840)
ap.add_argument("--epochs", type=int, default=2)
ap.add_argument("--frequent", type=int, default=10)
cfg = ap.parse_args()
logging.basicConfig(level=logging.INFO, format="%(message)s")
torch.manual_seed(1)
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cudnn.benchmark = True


def conv3x3(i, o, stride=1):
    return nn.Conv2d(i, o, 3, stride=stride, padding=1, bias=False)


class IBasicBlock(nn.Module):
    def __init__(self, i, o, stride=1, downsample=None):
        super().__init__()
        self.bn1, self.conv1, self.bn2 = nn.BatchNorm2d(i, eps=1e-5), conv3x3(i, o), nn.BatchNorm2d(o, eps=1e-5)
        self.prelu, self.conv2, self.bn3, self.downsample = nn.PReLU(o), conv3x3(o, o, stride), nn.BatchNorm2d(o, eps=1e-5), downsample

    def forward(self, x):
        identity = x
        out = self.bn3(self.conv2(self.prelu(self.bn2(self.conv1(self.bn1(x))))))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return out


class IResNet(nn.Module):
    def __init__(self, layers, width, num_features, fp16):
        super().__init__()
        self.fp16, self.inplanes = fp16, width
        self.conv1, self.bn1, self.prelu = conv3x3(3, width), nn.BatchNorm2d(width), nn.PReLU(width)
        self.layers = nn.Sequential(*[self._make(width * 2 ** i, n) for i, n in enumerate(layers)])
        self.bn2 = nn.BatchNorm2d(width * 8)
        self.dropout = nn.Dropout(p=0.0, inplace=True)
        self.fc = nn.Linear(width * 8 * 49, num_features)
        self.features = nn.BatchNorm1d(num_features)
        nn.init.constant_(self.features.weight, 1.0)
        self.features.weight.requires_grad = False
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.normal_(m.weight, 0, 0.1)

    def _make(self, planes, n):
        down = nn.Sequential(nn.Conv2d(self.inplanes, planes, 1, stride=2, bias=False), nn.BatchNorm2d(planes))
        blocks = [IBasicBlock(self.inplanes, planes, 2, down)] + [IBasicBlock(planes, planes) for _ in range(n - 1)]
        self.inplanes = planes
        return nn.Sequential(*blocks)

    def forward(self, x):
        with torch.autocast(device, dtype=torch.float16, enabled=self.fp16):
            x = self.prelu(self.bn1(self.conv1(x)))
            x = self.layers(x)
            x = self.dropout(torch.flatten(self.bn2(x), 1))
        return self.features(self.fc(x.float() if self.fp16 else x))


class ArcFaceHead(nn.Module):
    def __init__(self, emb, classes, s=64.0, margin=0.5):
        super().__init__()
        self.weight = nn.Parameter(torch.normal(0, 0.01, (classes, emb)))
        self.s, self.margin = s, margin

    def forward(self, emb, labels):
        logits = linear(normalize(emb), normalize(self.weight)).clamp(-1, 1)
        index = torch.where(labels != -1)[0]
        target_logit = logits[index, labels[index]]
        with torch.no_grad():
            target_logit.arccos_()
            logits.arccos_()
            final = target_logit + self.margin
            logits[index, labels[index]] = final
            logits.cos_()
        return logits * self.s


class Faces(Dataset):
    def __init__(self, n, classes, seed):
        g = torch.Generator().manual_seed(seed)
        self.pool = torch.randint(0, 256, (256, 3, 112, 112), generator=g, dtype=torch.uint8)
        self.y = torch.randint(0, classes, (n,), generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = self.pool[i % 256]
        if torch.rand(()) < 0.5:
            x = x.flip(-1)
        return x.float().div(127.5).sub(1), self.y[i]


loader = DataLoader(Faces(cfg.n_train, cfg.num_classes, 0), cfg.batch_size, shuffle=True, drop_last=True, num_workers=2, pin_memory=True)
pairs = Faces(240, 2, 1)
backbone = IResNet(cfg.layers, cfg.width, cfg.embedding_size, fp16=device == "cuda").to(device)
head = ArcFaceHead(cfg.embedding_size, cfg.num_classes).train().to(device)
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD([{"params": backbone.parameters()}, {"params": head.parameters()}], lr=0.02, momentum=0.9, weight_decay=5e-4)
total_step = cfg.epochs * len(loader)
sched = torch.optim.lr_scheduler.PolynomialLR(opt, total_iters=total_step, power=2)
amp = torch.amp.GradScaler(device, growth_interval=100, enabled=device == "cuda")
output = tempfile.mkdtemp()


@torch.no_grad()
def verification():
    backbone.eval()
    embs = []
    for s in range(0, len(pairs), 60):
        x = torch.stack([pairs[i][0] for i in range(s, min(s + 60, len(pairs)))]).to(device)
        embs.append(backbone(x) + backbone(x.flip(-1)))
    e = normalize(torch.cat(embs))
    sim = (e[0::2] * e[1::2]).sum(1)
    backbone.train()
    return sim.mean().item(), sim.std().item()


global_step, start = 0, time.time()
for epoch in range(cfg.epochs):
    backbone.train()
    for img, label in loader:
        global_step += 1
        img, label = img.to(device, non_blocking=True), label.to(device, non_blocking=True)
        loss = criterion(head(backbone(img), label), label)
        amp.scale(loss).backward()
        amp.unscale_(opt)
        torch.nn.utils.clip_grad_norm_(backbone.parameters(), 5)
        amp.step(opt)
        amp.update()
        opt.zero_grad()
        sched.step()
        if global_step % cfg.frequent == 0:
            speed = cfg.frequent * cfg.batch_size / (time.time() - start)
            start = time.time()
            logging.info(f"Speed {speed:.1f} samples/sec Loss {loss.item():.3f} LR {sched.get_last_lr()[0]:.5f} Epoch {epoch} Step {global_step} Scale {amp.get_scale():.0f}")
    logging.info("epoch %d verification mean %.4f std %.4f", epoch, *verification())
    torch.save(backbone.state_dict(), os.path.join(output, "model.pt"))
    torch.save({"epoch": epoch, "head": head.state_dict(), "opt": opt.state_dict()}, os.path.join(output, "checkpoint.pt"))

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
