"""Fine-grained classification with timm EfficientNetV2-S, AMP fp16 and channels_last."""
import argparse
import time

import timm
import timm.optim
import timm.scheduler
import torch
from timm.loss import LabelSmoothingCrossEntropy
from timm.utils import AverageMeter, NativeScaler, accuracy, random_seed
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description="timm finetune")
parser.add_argument("--model", default="tf_efficientnetv2_s")
parser.add_argument("-b", "--batch-size", type=int, default=48)
parser.add_argument("-vb", "--validation-batch-size", type=int, default=96)
parser.add_argument("--img-size", type=int, default=300)
parser.add_argument("--num-classes", type=int, default=196)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--opt", default="rmsproptf")
parser.add_argument("--lr", type=float, default=1e-3)
parser.add_argument("--drop-path", type=float, default=0.2)
parser.add_argument("--clip-grad", type=float, default=2.0)
parser.add_argument("--train-images", type=int, default=2400)
parser.add_argument("--val-images", type=int, default=480)
parser.add_argument("-j", "--workers", type=int, default=8)


class Cars(Dataset):
    def __init__(self, n, size, classes):
        self.n, self.size, self.classes = n, size, classes

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.randn(3, self.size, self.size, generator=g), i % self.classes


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, args, scaler, lr_scheduler, device):
    losses_m = AverageMeter()
    model.train()
    num_updates = epoch * len(loader)
    end = time.time()
    for batch_idx, (input, target) in enumerate(loader):
        input = input.to(device, non_blocking=True).contiguous(memory_format=torch.channels_last)
        target = target.to(device, non_blocking=True)
        with torch.autocast("cuda", dtype=torch.float16):
            output = model(input)
            loss = loss_fn(output, target)
        optimizer.zero_grad()
        scaler(loss, optimizer, clip_grad=args.clip_grad, clip_mode="norm", parameters=model.parameters())
        num_updates += 1
        losses_m.update(loss.item(), input.size(0))
        lr_scheduler.step_update(num_updates=num_updates)
        if batch_idx % 10 == 0:
            print(f"Train: {epoch} [{batch_idx:>4d}/{len(loader)}] Loss: {losses_m.val:.4f} ({losses_m.avg:.4f}) "
                  f"Time: {time.time() - end:.1f}s")


def validate(model, loader, device):
    top1_m = AverageMeter()
    model.eval()
    with torch.inference_mode():
        for input, target in loader:
            input = input.to(device).contiguous(memory_format=torch.channels_last)
            target = target.to(device)
            with torch.autocast("cuda", dtype=torch.float16):
                output = model(input)
            acc1, _ = accuracy(output, target, topk=(1, 5))
            top1_m.update(acc1.item(), input.size(0))
    print(f"Test: Acc@1: {top1_m.avg:.3f}")


def main():
    args = parser.parse_args()
    random_seed(42)
    device = torch.device("cuda")
    torch.backends.cudnn.benchmark = True
    model = timm.create_model(args.model, pretrained=False, num_classes=args.num_classes, drop_path_rate=args.drop_path)
    model.to(device=device, memory_format=torch.channels_last)
    optimizer = timm.optim.create_optimizer_v2(model, opt=args.opt, lr=args.lr, weight_decay=1e-5, momentum=0.9)
    loader_train = DataLoader(Cars(args.train_images, args.img_size, args.num_classes), args.batch_size, shuffle=True,
                              num_workers=args.workers, pin_memory=True, drop_last=True)
    loader_eval = DataLoader(Cars(args.val_images, args.img_size, args.num_classes), args.validation_batch_size,
                             num_workers=args.workers, pin_memory=True)
    lr_scheduler, num_epochs = timm.scheduler.create_scheduler_v2(
        optimizer, sched="cosine", num_epochs=args.epochs, warmup_epochs=0, updates_per_epoch=len(loader_train),
        step_on_epochs=False)
    loss_fn = LabelSmoothingCrossEntropy(0.1).to(device)
    scaler = NativeScaler(device="cuda")
    for epoch in range(num_epochs):
        train_one_epoch(epoch, model, loader_train, optimizer, loss_fn, args, scaler, lr_scheduler, device)
        validate(model, loader_eval, device)
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
