#!/usr/bin/env python3
"""Small version of timm's train.py: XCiT, bf16 autocast, gradient accumulation, grad clipping, Mixup off."""
import argparse
import logging
import os
import tempfile
import time
from collections import OrderedDict

import torch
import torch.nn as nn
import timm
from timm.data import create_transform
from timm.loss import LabelSmoothingCrossEntropy
from timm.models import create_model
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import AverageMeter, CheckpointSaver, accuracy, dispatch_clip_grad, random_seed
from torch.utils.data import DataLoader, Dataset

_logger = logging.getLogger('train')
parser = argparse.ArgumentParser()
parser.add_argument('--model', default='xcit_small_12_p16_224')
parser.add_argument('--num-classes', type=int, default=100)
parser.add_argument('-b', '--batch-size', type=int, default=96)
parser.add_argument('--grad-accum-steps', type=int, default=2)
parser.add_argument('--epochs', type=int, default=2)
parser.add_argument('--lr', type=float, default=5e-4)
parser.add_argument('--clip-grad', type=float, default=1.0)
parser.add_argument('--drop-path', type=float, default=0.1)
parser.add_argument('--smoothing', type=float, default=0.1)
parser.add_argument('--train-samples', type=int, default=2400)
parser.add_argument('--val-samples', type=int, default=400)
parser.add_argument('--log-interval', type=int, default=5)
parser.add_argument('--seed', type=int, default=42)


class RandomImages(Dataset):
    def __init__(self, n, classes, img_size, seed):
        g = torch.Generator().manual_seed(seed)
        self.target = torch.randint(0, classes, (n,), generator=g)
        self.bank = torch.randint(0, 255, (64, 3, img_size, img_size), dtype=torch.uint8, generator=g)

    def __len__(self):
        return len(self.target)

    def __getitem__(self, i):
        x = self.bank[i % len(self.bank)].float().div_(255)
        return (x + 0.01 * float(self.target[i]) - 0.45) / 0.225, int(self.target[i])


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, args, lr_scheduler, device):
    losses_m = AverageMeter()
    model.train()
    accum_steps = args.grad_accum_steps
    updates_per_epoch = (len(loader) + accum_steps - 1) // accum_steps
    num_updates = epoch * updates_per_epoch
    optimizer.zero_grad()
    start = time.time()
    for batch_idx, (inp, target) in enumerate(loader):
        need_update = (batch_idx + 1) % accum_steps == 0 or batch_idx + 1 == len(loader)
        inp, target = inp.to(device, non_blocking=True), target.to(device, non_blocking=True)
        with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
            output = model(inp)
            loss = loss_fn(output, target)
        loss = loss / accum_steps
        loss.backward()
        losses_m.update(loss.item() * accum_steps, inp.size(0))
        if not need_update:
            continue
        dispatch_clip_grad(model.parameters(), args.clip_grad, mode='norm')
        optimizer.step()
        optimizer.zero_grad()
        num_updates += 1
        lr_scheduler.step_update(num_updates=num_updates, metric=losses_m.avg)
        if num_updates % args.log_interval == 0:
            lr = optimizer.param_groups[0]['lr']
            _logger.info(f'Train: {epoch} [{batch_idx}/{len(loader)}] Loss: {losses_m.val:.3g} ({losses_m.avg:.3g}) '
                         f'LR: {lr:.3e} {time.time() - start:.1f}s')
    return OrderedDict([('loss', losses_m.avg)])


@torch.inference_mode()
def validate(model, loader, loss_fn, device):
    losses_m, top1_m, top5_m = AverageMeter(), AverageMeter(), AverageMeter()
    model.eval()
    for inp, target in loader:
        inp, target = inp.to(device), target.to(device)
        with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
            output = model(inp)
            loss = loss_fn(output, target)
        acc1, acc5 = accuracy(output, target, topk=(1, 5))
        losses_m.update(loss.item(), inp.size(0))
        top1_m.update(acc1.item(), output.size(0))
        top5_m.update(acc5.item(), output.size(0))
    return OrderedDict([('loss', losses_m.avg), ('top1', top1_m.avg), ('top5', top5_m.avg)])


def main():
    logging.basicConfig(level=logging.INFO)
    args = parser.parse_args()
    random_seed(args.seed, 0)
    device = torch.device("cuda")
    model = create_model(args.model, pretrained=False, num_classes=args.num_classes, drop_path_rate=args.drop_path)
    _logger.info(f'Model {args.model} created, param count: {sum(p.numel() for p in model.parameters())}')
    model.to(device)
    img_size = model.default_cfg['input_size'][-1]

    optimizer = create_optimizer_v2(model, opt='adamw', lr=args.lr, weight_decay=0.05)
    loader_train = DataLoader(RandomImages(args.train_samples, args.num_classes, img_size, 0), args.batch_size,
                              shuffle=True, num_workers=2, pin_memory=True, drop_last=True)
    loader_eval = DataLoader(RandomImages(args.val_samples, args.num_classes, img_size, 1), args.batch_size,
                             num_workers=1, pin_memory=True)
    updates = (len(loader_train) + args.grad_accum_steps - 1) // args.grad_accum_steps
    lr_scheduler = CosineLRScheduler(optimizer, t_initial=args.epochs * updates, warmup_t=3, warmup_lr_init=1e-6,
                                     t_in_epochs=False)
    train_loss_fn = LabelSmoothingCrossEntropy(smoothing=args.smoothing)
    validate_loss_fn = nn.CrossEntropyLoss()
    saver = CheckpointSaver(model=model, optimizer=optimizer, args=args, checkpoint_dir=tempfile.mkdtemp(),
                            recovery_dir=tempfile.mkdtemp(), max_history=2)
    for epoch in range(args.epochs):
        train_metrics = train_one_epoch(epoch, model, loader_train, optimizer, train_loss_fn, args, lr_scheduler, device)
        eval_metrics = validate(model, loader_eval, validate_loss_fn, device)
        best_metric, best_epoch = saver.save_checkpoint(epoch, metric=eval_metrics['top1'])
        lr_scheduler.step(epoch + 1, eval_metrics['top1'])
        _logger.info(f'epoch {epoch} {dict(train_metrics)} {dict(eval_metrics)} best {best_metric}')


if __name__ == '__main__':
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
