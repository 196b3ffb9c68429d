"""AugMix with Jensen-Shannon loss and split batch norm on ResNeXt-50, written with timm building blocks."""
import argparse
import tempfile
import time
from contextlib import suppress

import torch
import torch.nn.functional as F
from timm import create_model
from timm.layers import convert_splitbn_model
from timm.loss import JsdCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.utils import AverageMeter, CheckpointSaver, NativeScaler, accuracy, random_seed
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="resnext50_32x4d")
parser.add_argument("--num-classes", type=int, default=100)
parser.add_argument("--img-size", type=int, default=224)
parser.add_argument("--batch-size", "-b", type=int, default=24)
parser.add_argument("--aug-splits", type=int, default=3)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--train-size", type=int, default=480)
parser.add_argument("--opt", default="lookahead_sgd")
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--clip-grad", type=float, default=5.0)
parser.add_argument("--amp", action="store_true", default=True)
parser.add_argument("--no-amp", dest="amp", action="store_false")
args = parser.parse_args()
random_seed(42, 0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class AugMixDataset(Dataset):
    def __init__(self, n, splits, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = (torch.rand(n, 3, 56, 56, generator=g) * 255).to(torch.uint8)
        self.y = torch.randint(0, args.num_classes, (n,), generator=g)
        self.splits = splits
        self.base = v2.Compose([v2.RandomResizedCrop(args.img_size, scale=(0.3, 1.0), antialias=True), v2.RandomHorizontalFlip()])
        self.ops = [v2.RandomSolarize(128, p=1.0), v2.RandomPosterize(4, p=1.0), v2.RandomInvert(p=1.0), v2.ColorJitter(0.4)]

    def __len__(self):
        return len(self.x)

    def norm(self, x):
        return (x.float() / 255 - 0.45) / 0.225

    def augmix(self, x):
        w = torch.distributions.Dirichlet(torch.ones(2)).sample()
        m = torch.rand(())
        mix = sum(wi * self.norm(self.ops[int(torch.randint(0, 4, ()))](x)) for wi in w)
        return (1 - m) * self.norm(x) + m * mix

    def __getitem__(self, i):
        if self.splits == 0:
            return self.norm(v2.functional.resize(self.x[i], [args.img_size, args.img_size], antialias=True)), self.y[i]
        x = self.base(self.x[i])
        return tuple([self.norm(x)] + [self.augmix(x) for _ in range(self.splits - 1)]), self.y[i]


def collate_splits(batch):
    xs = [torch.stack([b[0][s] for b in batch]) for s in range(args.aug_splits)]
    return torch.cat(xs), torch.stack([b[1] for b in batch]).repeat(args.aug_splits)


model = create_model(args.model, num_classes=args.num_classes, drop_rate=0.1)
model = convert_splitbn_model(model, max(args.aug_splits, 2))
model = model.to(device, memory_format=torch.channels_last)
optimizer = create_optimizer_v2(model, opt=args.opt, lr=args.lr, weight_decay=1e-4, momentum=0.9)
scheduler, num_epochs = create_scheduler_v2(optimizer, sched="cosine", num_epochs=args.epochs, warmup_epochs=0, updates_per_epoch=args.train_size // args.batch_size)
loss_scaler = NativeScaler(device=device.type) if args.amp else None
train_loss_fn = JsdCrossEntropy(num_splits=args.aug_splits, smoothing=0.1).to(device)
validate_loss_fn = torch.nn.CrossEntropyLoss().to(device)
autocast = (lambda: torch.autocast(device.type, dtype=torch.float16)) if args.amp else suppress
train_loader = DataLoader(AugMixDataset(args.train_size, args.aug_splits, 0), args.batch_size, shuffle=True, drop_last=True, num_workers=2, collate_fn=collate_splits)
val_loader = DataLoader(AugMixDataset(args.train_size // 4, 0, 1), args.batch_size * 2, num_workers=1)
saver = CheckpointSaver(model=model, optimizer=optimizer, args=args, amp_scaler=loss_scaler, checkpoint_dir=tempfile.mkdtemp(), recovery_dir=tempfile.mkdtemp(), max_history=1)

num_updates = 0
for epoch in range(args.epochs):
    model.train()
    losses, t0 = AverageMeter(), time.time()
    for i, (x, y) in enumerate(train_loader):
        x, y = x.to(device).contiguous(memory_format=torch.channels_last), y.to(device)
        with autocast():
            out = model(x)
            loss = train_loss_fn(out, y)
        optimizer.zero_grad()
        if loss_scaler is not None:
            loss_scaler(loss, optimizer, clip_grad=args.clip_grad, parameters=model.parameters())
        else:
            loss.backward()
            optimizer.step()
        losses.update(loss.item(), x.size(0))
        num_updates += 1
        scheduler.step_update(num_updates=num_updates, metric=losses.avg)
        if i % 5 == 0:
            print(f"Train: {epoch} [{i}/{len(train_loader)}] Loss: {losses.val:.3f} ({losses.avg:.3f}) LR: {optimizer.param_groups[0]['lr']:.3e}")
    if hasattr(optimizer, "sync_lookahead"):
        optimizer.sync_lookahead()
    model.eval()
    top1, vloss = AverageMeter(), AverageMeter()
    with torch.no_grad():
        for x, y in val_loader:
            x, y = x.to(device).contiguous(memory_format=torch.channels_last), y.to(device)
            with autocast():
                out = model(x)
            vloss.update(validate_loss_fn(out, y).item(), x.size(0))
            top1.update(accuracy(out, y)[0].item(), x.size(0))
    print(f"Test: {epoch} loss {vloss.avg:.3f} acc@1 {top1.avg:.2f} {time.time() - t0:.1f}s")
    saver.save_checkpoint(epoch, metric=top1.avg)
    scheduler.step(epoch + 1, top1.avg)

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
