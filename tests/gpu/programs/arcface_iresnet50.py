"""ArcFace with IResNet-50 (after insightface/recognition/arcface_torch), fp16 backbone, large identity head."""
import argparse
import logging
import math
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")


def conv3x3(i, o, stride=1):
    return nn.Conv2d(i, o, kernel_size=3, stride=stride, padding=1, bias=False)


class IBasicBlock(nn.Module):
    def __init__(self, inplanes, planes, stride=1, downsample=None):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inplanes, eps=1e-05)
        self.conv1 = conv3x3(inplanes, planes)
        self.bn2 = nn.BatchNorm2d(planes, eps=1e-05)
        self.prelu = nn.PReLU(planes)
        self.conv2 = conv3x3(planes, planes, stride)
        self.bn3 = nn.BatchNorm2d(planes, eps=1e-05)
        self.downsample = downsample

    def forward(self, x):
        identity = x
        out = self.conv1(self.bn1(x))
        out = self.bn3(self.conv2(self.prelu(self.bn2(out))))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return out


class IResNet(nn.Module):
    fc_scale = 7 * 7

    def __init__(self, layers=(3, 4, 14, 3), dropout=0.0, num_features=512, fp16=True):
        super().__init__()
        self.inplanes, self.fp16 = 64, fp16
        self.conv1 = conv3x3(3, 64)
        self.bn1 = nn.BatchNorm2d(64, eps=1e-05)
        self.prelu = nn.PReLU(64)
        self.layer1 = self._make_layer(64, layers[0])
        self.layer2 = self._make_layer(128, layers[1])
        self.layer3 = self._make_layer(256, layers[2])
        self.layer4 = self._make_layer(512, layers[3])
        self.bn2 = nn.BatchNorm2d(512, eps=1e-05)
        self.dropout = nn.Dropout(p=dropout, inplace=True)
        self.fc = nn.Linear(512 * self.fc_scale, num_features)
        self.features = nn.BatchNorm1d(num_features, eps=1e-05)
        nn.init.constant_(self.features.weight, 1.0)
        self.features.weight.requires_grad = False
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.normal_(m.weight, 0, 0.1)

    def _make_layer(self, planes, blocks):
        downsample = nn.Sequential(nn.Conv2d(self.inplanes, planes, 1, 2, bias=False), nn.BatchNorm2d(planes, eps=1e-05))
        layers = [IBasicBlock(self.inplanes, planes, 2, downsample)]
        self.inplanes = planes
        layers += [IBasicBlock(planes, planes) for _ in range(1, blocks)]
        return nn.Sequential(*layers)

    def forward(self, x):
        with torch.autocast("cuda", dtype=torch.float16, enabled=self.fp16):
            x = self.prelu(self.bn1(self.conv1(x)))
            x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
            x = self.bn2(x)
            x = torch.flatten(x, 1)
            x = self.dropout(x)
        x = self.fc(x.float() if self.fp16 else x)
        return self.features(x)


class ArcFaceHead(nn.Module):
    def __init__(self, embedding_size, num_classes, s=64.0, margin=0.5):
        super().__init__()
        self.weight = nn.Parameter(torch.normal(0, 0.01, (num_classes, embedding_size)))
        self.s = s
        self.cos_m, self.sin_m = math.cos(margin), math.sin(margin)
        self.theta = math.cos(math.pi - margin)
        self.sinmm = math.sin(math.pi - margin) * margin

    def forward(self, embeddings, labels):
        logits = F.linear(F.normalize(embeddings), F.normalize(self.weight)).clamp(-1, 1)
        index = torch.where(labels != -1)[0]
        target_logit = logits[index, labels[index].view(-1)]
        sin_theta = torch.sqrt(1.0 - torch.pow(target_logit, 2))
        cos_theta_m = target_logit * self.cos_m - sin_theta * self.sin_m
        final_target_logit = torch.where(target_logit > self.theta, cos_theta_m, target_logit - self.sinmm)
        logits = logits.clone()
        logits[index, labels[index].view(-1)] = final_target_logit
        return F.cross_entropy(logits * self.s, labels)


class SyntheticDataset(Dataset):
    def __init__(self, n, num_classes):
        img = np.random.RandomState(0).randint(0, 255, size=(112, 112, 3), dtype=np.int32)
        img = np.transpose(img, (2, 0, 1))
        img = torch.from_numpy(img).float()
        self.img = ((img / 255) - 0.5) / 0.5
        self.n, self.num_classes = n, num_classes

    def __getitem__(self, index):
        return torch.roll(self.img, index % 112, -1), (index * 7919) % self.num_classes

    def __len__(self):
        return self.n


class PolynomialLRWarmup(torch.optim.lr_scheduler.LRScheduler):
    def __init__(self, optimizer, warmup_iters, total_iters=5, power=2.0, last_epoch=-1):
        self.total_iters, self.power, self.warmup_iters = total_iters, power, warmup_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        e = self.last_epoch
        if e < self.warmup_iters:
            return [b * (e + 1) / self.warmup_iters for b in self.base_lrs]
        r = max(0.0, 1 - (e - self.warmup_iters) / max(1, self.total_iters - self.warmup_iters))
        return [b * r ** self.power for b in self.base_lrs]


@torch.no_grad()
def verification(backbone, device, pairs, batch_size):
    """LFW-like: each image and its mirror, 10 thresholds."""
    backbone.eval()
    g = torch.Generator().manual_seed(3)
    data = torch.rand(pairs * 2, 3, 112, 112, generator=g) * 2 - 1
    issame = torch.rand(pairs, generator=g) < 0.5
    data[1::2][issame] = data[0::2][issame] * 0.9
    embs = []
    for flip in (False, True):
        d = data.flip(-1) if flip else data
        embs.append(torch.cat([backbone(b.to(device)).cpu() for b in d.split(batch_size)]))
    e = F.normalize(embs[0] + embs[1])
    dist = (e[0::2] - e[1::2]).pow(2).sum(1)
    acc = max((((dist < t) == issame).float().mean().item()) for t in torch.arange(0.2, 4, 0.4))
    backbone.train()
    return acc


def main(a):
    torch.manual_seed(2048)
    device = torch.device("cuda")
    torch.backends.cudnn.benchmark = True
    backbone = IResNet(layers=tuple(a.layers)).to(device)
    backbone.train()
    head = ArcFaceHead(512, a.num_classes).to(device)
    loader = DataLoader(SyntheticDataset(a.n, a.num_classes), a.batch_size, shuffle=True, drop_last=True, num_workers=2,
                        pin_memory=True)
    opt = torch.optim.SGD([{"params": backbone.parameters()}, {"params": head.parameters()}], lr=a.lr, momentum=0.9,
                          weight_decay=5e-4)
    total = len(loader) * a.epochs
    sched = PolynomialLRWarmup(opt, warmup_iters=total // 10 + 1, total_iters=total)
    amp = torch.amp.GradScaler("cuda", growth_interval=100)
    out = tempfile.mkdtemp()
    step = 0
    for epoch in range(a.epochs):
        for img, local_labels in loader:
            step += 1
            img, local_labels = img.to(device, non_blocking=True), local_labels.to(device, non_blocking=True)
            local_embeddings = backbone(img)
            loss = head(local_embeddings, local_labels)
            amp.scale(loss).backward()
            amp.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(backbone.parameters(), 5)
            amp.step(opt)
            amp.update()
            opt.zero_grad()
            sched.step()
            if step % 5 == 0:
                logging.info("epoch %d step %d/%d loss %.3f lr %.5f scale %.0f", epoch, step, total, loss.item(),
                             sched.get_last_lr()[0], amp.get_scale())
        logging.info("verification accuracy %.4f", verification(backbone, device, a.pairs, a.batch_size))
        torch.save({"epoch": epoch + 1, "state_dict_backbone": backbone.state_dict(), "head": head.state_dict(),
                    "optimizer": opt.state_dict()}, os.path.join(out, "checkpoint.pt"))


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--batch_size", type=int, default=128)
    p.add_argument("--num_classes", type=int, default=93431)
    p.add_argument("--n", type=int, default=3840)
    p.add_argument("--pairs", type=int, default=128)
    p.add_argument("--layers", type=int, nargs=4, default=[3, 4, 14, 3])
    p.add_argument("--lr", type=float, default=0.02)
    p.add_argument("--epochs", type=int, default=2)
    main(p.parse_args())
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
