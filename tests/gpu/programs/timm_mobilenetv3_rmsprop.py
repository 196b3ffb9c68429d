"""MobileNetV3-Large with the timm RMSpropTF recipe, step LR and ModelEmaV3, fp32."""
import argparse

import timm
import torch
import torch.nn as nn
from timm.optim import RMSpropTF, param_groups_weight_decay
from timm.scheduler import StepLRScheduler
from timm.utils import AverageMeter, ModelEmaV3, accuracy
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=128)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--size", type=int, default=192)
parser.add_argument("--n-train", type=int, default=1024)
parser.add_argument("--n-val", type=int, default=256)
parser.add_argument("--classes", type=int, default=37)
args = parser.parse_args()

torch.manual_seed(1)
device = "cuda" if torch.cuda.is_available() else "cpu"


def make_data(n):
    x = torch.randn(n, 3, args.size, args.size)
    y = torch.randint(0, args.classes, (n,))
    return TensorDataset(x, y)


train_loader = DataLoader(make_data(args.n_train), batch_size=args.batch_size, shuffle=True, drop_last=True)
val_loader = DataLoader(make_data(args.n_val), batch_size=args.batch_size)

model = timm.create_model("mobilenetv3_large_100", pretrained=False, num_classes=args.classes,
                          drop_rate=0.2, drop_path_rate=0.1)
model.to(device)
ema = ModelEmaV3(model, decay=0.999)
optimizer = RMSpropTF(param_groups_weight_decay(model, 1e-5), lr=0.016, alpha=0.9, eps=1e-3, momentum=0.9)
scheduler = StepLRScheduler(optimizer, decay_t=1, decay_rate=0.97, warmup_t=1, warmup_lr_init=1e-4)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)


@torch.no_grad()
def validate(net):
    net.eval()
    loss_m, acc_m = AverageMeter(), AverageMeter()
    for x, y in val_loader:
        x, y = x.to(device), y.to(device)
        out = net(x)
        loss_m.update(criterion(out, y).item(), len(x))
        acc_m.update(accuracy(out, y, topk=(1,))[0].item(), len(x))
    return loss_m.avg, acc_m.avg


for epoch in range(args.epochs):
    scheduler.step(epoch)
    model.train()
    loss_m = AverageMeter()
    for x, y in train_loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        ema.update(model)
        loss_m.update(loss.item(), len(x))
    vl, va = validate(model)
    el, ea = validate(ema.module)
    print(f"epoch {epoch} loss {loss_m.avg:.4f} val {vl:.4f}/{va:.2f} ema {el:.4f}/{ea:.2f}")

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
