"""FixMatch semi-supervised learning with WideResNet-28-2, interleaved batches and EMA (kekmodel style)."""
import argparse
import copy
import logging
import math
import os
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, RandomSampler, SequentialSampler
from torchvision.transforms import v2

logging.basicConfig(level=logging.INFO, format="%(message)s")
logger = logging.getLogger(__name__)
best_acc = 0

parser = argparse.ArgumentParser(description="PyTorch FixMatch Training")
parser.add_argument("--num-labeled", type=int, default=400)
parser.add_argument("--num-unlabeled", type=int, default=3000)
parser.add_argument("--num-classes", type=int, default=10)
parser.add_argument("--widen", type=int, default=4)
parser.add_argument("--depth", type=int, default=28)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--eval-step", type=int, default=20)
parser.add_argument("--batch-size", type=int, default=24)
parser.add_argument("--mu", default=7, type=int)
parser.add_argument("--lr", default=0.03, type=float)
parser.add_argument("--lambda-u", default=1.0, type=float)
parser.add_argument("--T", default=1.0, type=float)
parser.add_argument("--threshold", default=0.95, type=float)
parser.add_argument("--ema-decay", default=0.999, type=float)
args = parser.parse_args()
torch.manual_seed(5)
args.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class BasicBlock(nn.Module):
    def __init__(self, i, o, stride, activate_before_residual=False):
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm2d(i, momentum=0.001), nn.BatchNorm2d(o, momentum=0.001)
        self.relu1, self.relu2 = nn.LeakyReLU(0.1, inplace=True), nn.LeakyReLU(0.1, inplace=True)
        self.conv1, self.conv2 = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.equal = i == o
        self.shortcut = None if self.equal else nn.Conv2d(i, o, 1, stride, bias=False)
        self.abr = activate_before_residual

    def forward(self, x):
        if not self.equal and self.abr:
            x = self.relu1(self.bn1(x))
        else:
            out = self.relu1(self.bn1(x))
        out = self.relu2(self.bn2(self.conv1(out if self.equal else x)))
        return torch.add(x if self.equal else self.shortcut(x), self.conv2(out))


class WideResNet(nn.Module):
    def __init__(self, classes, depth, widen):
        super().__init__()
        ch, n = [16, 16 * widen, 32 * widen, 64 * widen], (depth - 4) // 6
        self.conv1 = nn.Conv2d(3, ch[0], 3, 1, 1, bias=False)
        self.block1 = nn.Sequential(*[BasicBlock(ch[0] if i == 0 else ch[1], ch[1], 1, True) for i in range(n)])
        self.block2 = nn.Sequential(*[BasicBlock(ch[1] if i == 0 else ch[2], ch[2], 2 if i == 0 else 1, i == 0) for i in range(n)])
        self.block3 = nn.Sequential(*[BasicBlock(ch[2] if i == 0 else ch[3], ch[3], 2 if i == 0 else 1, i == 0) for i in range(n)])
        self.bn1, self.fc = nn.BatchNorm2d(ch[3], momentum=0.001), nn.Linear(ch[3], classes)

    def forward(self, x):
        out = self.block3(self.block2(self.block1(self.conv1(x))))
        out = F.leaky_relu(self.bn1(out), 0.1, inplace=True)
        return self.fc(F.adaptive_avg_pool2d(out, 1).flatten(1))


class ModelEMA:
    def __init__(self, model, decay):
        self.ema = copy.deepcopy(model)
        self.ema.eval()
        self.decay = decay
        for p in self.ema.parameters():
            p.requires_grad_(False)

    def update(self, model):
        with torch.no_grad():
            msd, esd = model.state_dict(), self.ema.state_dict()
            for k in esd:
                if k.endswith("num_batches_tracked"):
                    esd[k].copy_(msd[k])
                else:
                    esd[k].copy_(esd[k] * self.decay + (1.0 - self.decay) * msd[k])


class Cifar(Dataset):
    weak = v2.Compose([v2.RandomHorizontalFlip(), v2.RandomCrop(32, padding=4, padding_mode="reflect")])
    strong = v2.Compose([v2.RandomHorizontalFlip(), v2.RandomCrop(32, padding=4, padding_mode="reflect"), v2.RandAugment(2, 10)])

    def __init__(self, n, mode, seed):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, args.num_classes, (n,), generator=g)
        self.x = (F.interpolate(torch.rand(n, 3, 4, 4, generator=g), size=32) * 255).to(torch.uint8)
        self.mode = mode

    def __len__(self):
        return len(self.x)

    @staticmethod
    def norm(x):
        return (x.float() / 255 - 0.48) / 0.25

    def __getitem__(self, i):
        if self.mode == "unlabeled":
            return (self.norm(self.weak(self.x[i])), self.norm(self.strong(self.x[i]))), self.y[i]
        return self.norm(self.weak(self.x[i]) if self.mode == "labeled" else self.x[i]), self.y[i]


def interleave(x, size):
    s = list(x.shape)
    return x.reshape([-1, size] + s[1:]).transpose(0, 1).reshape([-1] + s[1:])


def de_interleave(x, size):
    s = list(x.shape)
    return x.reshape([size, -1] + s[1:]).transpose(0, 1).reshape([-1] + s[1:])


labeled = Cifar(args.num_labeled, "labeled", 0)
unlabeled = Cifar(args.num_unlabeled, "unlabeled", 1)
labeled_loader = DataLoader(labeled, sampler=RandomSampler(labeled), batch_size=args.batch_size, drop_last=True)
unlabeled_loader = DataLoader(unlabeled, sampler=RandomSampler(unlabeled), batch_size=args.batch_size * args.mu, num_workers=2, drop_last=True)
test = Cifar(500, "test", 2)
test_loader = DataLoader(test, sampler=SequentialSampler(test), batch_size=args.batch_size)

model = WideResNet(args.num_classes, args.depth, args.widen).to(args.device)
no_decay = ["bias", "bn"]
grouped = [{"params": [p for n, p in model.named_parameters() if not any(nd in n for nd in no_decay)], "weight_decay": 5e-4},
           {"params": [p for n, p in model.named_parameters() if any(nd in n for nd in no_decay)], "weight_decay": 0.0}]
optimizer = torch.optim.SGD(grouped, lr=args.lr, momentum=0.9, nesterov=True)
total = args.epochs * args.eval_step
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: max(0.0, math.cos(math.pi * 7.0 / 16.0 * s / total)))
ema_model = ModelEMA(model, args.ema_decay)
out = tempfile.mkdtemp()
model.zero_grad()
labeled_iter, unlabeled_iter = iter(labeled_loader), iter(unlabeled_loader)
for epoch in range(args.epochs):
    model.train()
    t0, sums = time.time(), torch.zeros(4)
    for step in range(args.eval_step):
        try:
            inputs_x, targets_x = next(labeled_iter)
        except StopIteration:
            labeled_iter = iter(labeled_loader)
            inputs_x, targets_x = next(labeled_iter)
        try:
            (inputs_w, inputs_s), _ = next(unlabeled_iter)
        except StopIteration:
            unlabeled_iter = iter(unlabeled_loader)
            (inputs_w, inputs_s), _ = next(unlabeled_iter)
        bs = inputs_x.shape[0]
        inputs = interleave(torch.cat((inputs_x, inputs_w, inputs_s)), 2 * args.mu + 1).to(args.device)
        targets_x = targets_x.to(args.device)
        logits = de_interleave(model(inputs), 2 * args.mu + 1)
        logits_x = logits[:bs]
        logits_w, logits_s = logits[bs:].chunk(2)
        del logits
        Lx = F.cross_entropy(logits_x, targets_x, reduction="mean")
        pseudo = torch.softmax(logits_w.detach() / args.T, dim=-1)
        max_probs, targets_u = torch.max(pseudo, dim=-1)
        mask = max_probs.ge(args.threshold).float()
        Lu = (F.cross_entropy(logits_s, targets_u, reduction="none") * mask).mean()
        loss = Lx + args.lambda_u * Lu
        loss.backward()
        sums += torch.tensor([loss.item(), Lx.item(), Lu.item(), mask.mean().item()])
        optimizer.step()
        scheduler.step()
        ema_model.update(model)
        model.zero_grad()
    logger.info("Epoch %d loss %.4f Lx %.4f Lu %.4f mask %.2f time %.1fs", epoch + 1, *(sums / args.eval_step).tolist(), time.time() - t0)
    test_model = ema_model.ema
    test_model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in test_loader:
            correct += (test_model(x.to(args.device)).argmax(1).cpu() == y).sum().item()
    acc = 100 * correct / len(test)
    best_acc = max(acc, best_acc)
    logger.info("top-1 acc: %.2f best %.2f", acc, best_acc)
    torch.save({"epoch": epoch + 1, "state_dict": model.state_dict(), "ema_state_dict": test_model.state_dict(), "acc": acc,
                "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}, os.path.join(out, "checkpoint.pth.tar"))

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
