# ResNet-9 on CIFAR-10 sized data, DAWNBench style: data on the GPU, one-cycle, channels_last, bf16, torch.compile
import os
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
device = "cuda"
N_TRAIN, N_TEST = 20480, 4096
EPOCHS, BATCH, MAX_LR, WD = 3, 1024, 0.4, 5e-4


class Mul(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, x):
        return x * self.weight


def conv_bn(c_in, c_out, pool=False):
    layers = [nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.CELU(alpha=0.3)]
    if pool:
        layers.insert(1, nn.MaxPool2d(2))
    return nn.Sequential(*layers)


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.res1 = conv_bn(c, c)
        self.res2 = conv_bn(c, c)

    def forward(self, x):
        return x + self.res2(self.res1(x))


def resnet9(num_classes=10):
    return nn.Sequential(
        conv_bn(3, 64),
        conv_bn(64, 128, pool=True), Residual(128),
        conv_bn(128, 256, pool=True),
        conv_bn(256, 512, pool=True), Residual(512),
        nn.AdaptiveMaxPool2d(1), nn.Flatten(),
        nn.Linear(512, num_classes, bias=False), Mul(0.125))


def random_crop_flip(x, pad=4):
    n = x.shape[0]
    x = F.pad(x, (pad,) * 4, mode='reflect')
    i, j = torch.randint(0, 2 * pad + 1, (2,)).tolist()
    x = x[:, :, i:i + 32, j:j + 32]
    flip = torch.rand(n, device=x.device) < 0.5
    return torch.where(flip[:, None, None, None], x.flip(-1), x)


def load(n, seed):
    rng = np.random.RandomState(seed)
    y = rng.randint(0, 10, n)
    x = rng.randint(0, 200, (n, 32, 32, 3), dtype=np.uint8)
    x[np.arange(n), y * 3, :, 0] = 255
    x = torch.from_numpy(x).to(device).permute(0, 3, 1, 2).float().div_(255)
    x = (x - torch.tensor([0.4914, 0.4822, 0.4465], device=device)[:, None, None]) / 0.25
    return x.to(memory_format=torch.channels_last), torch.from_numpy(y).to(device)


train_x, train_y = load(N_TRAIN, 0)
test_x, test_y = load(N_TEST, 1)

model = resnet9().to(device, memory_format=torch.channels_last)
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=WD, nesterov=True)
steps = N_TRAIN // BATCH
sched = torch.optim.lr_scheduler.OneCycleLR(opt, MAX_LR, total_steps=EPOCHS * steps, pct_start=0.25)
loss_fn = nn.CrossEntropyLoss(label_smoothing=0.2)
compiled = torch.compile(model)

for epoch in range(EPOCHS):
    t0 = time.time()
    compiled.train()
    perm = torch.randperm(N_TRAIN, device=device)
    tot, correct = 0.0, 0
    for i in range(steps):
        idx = perm[i * BATCH:(i + 1) * BATCH]
        x, y = random_crop_flip(train_x[idx]), train_y[idx]
        with torch.autocast(device, dtype=torch.bfloat16):
            out = compiled(x)
            loss = loss_fn(out, y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        tot += loss.item()
        correct += (out.argmax(1) == y).sum().item()

    compiled.eval()
    with torch.no_grad(), torch.autocast(device, dtype=torch.bfloat16):
        # test-time flip augmentation
        preds = [compiled(xb) + compiled(xb.flip(-1)) for xb in test_x.split(BATCH)]
    acc = (torch.cat(preds).argmax(1) == test_y).float().mean().item()
    print(f"epoch {epoch} loss {tot / steps:.4f} train acc {correct / (steps * BATCH):.4f} test acc {acc:.4f} {time.time() - t0:.1f}s")

torch.save(model.state_dict(), os.path.join(tempfile.mkdtemp(), "resnet9.pt"))
if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
