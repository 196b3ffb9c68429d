"""DINO self-distillation with multi-crop, ViT-S/16 student and EMA teacher (after facebookresearch/dino), fp16."""
import argparse
import math
import os
import sys
import tempfile

import numpy as np
import timm
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2 as T


def get_args():
    p = argparse.ArgumentParser('DINO')
    p.add_argument('--out_dim', default=32768, type=int)
    p.add_argument('--momentum_teacher', default=0.996, type=float)
    p.add_argument('--warmup_teacher_temp', default=0.04, type=float)
    p.add_argument('--teacher_temp', default=0.07, type=float)
    p.add_argument('--clip_grad', type=float, default=3.0)
    p.add_argument('--batch_size', default=32, type=int)
    p.add_argument('--epochs', default=2, type=int)
    p.add_argument('--freeze_last_layer', default=1, type=int)
    p.add_argument('--lr', default=5e-4, type=float)
    p.add_argument('--local_crops_number', type=int, default=6)
    p.add_argument('--num_images', type=int, default=512)
    p.add_argument('--output_dir', default=tempfile.mkdtemp())
    return p.parse_args()


class MultiCrop:
    def __init__(self, local_crops_number):
        flip = T.RandomHorizontalFlip(p=0.5)
        norm = T.Compose([T.ToDtype(torch.float32, scale=True), T.Normalize([0.5] * 3, [0.25] * 3)])
        self.global_transfo = T.Compose([T.RandomResizedCrop(224, scale=(0.4, 1.0), antialias=False), flip, norm])
        self.local_transfo = T.Compose([T.RandomResizedCrop(96, scale=(0.05, 0.4), antialias=False), flip, norm])
        self.n = local_crops_number

    def __call__(self, image):
        crops = [self.global_transfo(image), self.global_transfo(image)]
        crops += [self.local_transfo(image) for _ in range(self.n)]
        return crops


class Images(Dataset):
    def __init__(self, n, transform):
        g = torch.Generator().manual_seed(0)
        self.small = torch.randint(0, 255, (n, 3, 12, 12), generator=g).float()
        self.transform = transform

    def __len__(self):
        return len(self.small)

    def __getitem__(self, i):
        img = F.interpolate(self.small[i][None], size=(240, 240), mode='bilinear')[0].to(torch.uint8)
        return self.transform(img), 0


class DINOHead(nn.Module):
    def __init__(self, in_dim, out_dim, hidden_dim=2048, bottleneck_dim=256):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(in_dim, hidden_dim), nn.GELU(), nn.Linear(hidden_dim, hidden_dim), nn.GELU(),
                                 nn.Linear(hidden_dim, bottleneck_dim))
        self.apply(self._init_weights)
        self.last_layer = nn.utils.parametrizations.weight_norm(nn.Linear(bottleneck_dim, out_dim, bias=False))
        self.last_layer.parametrizations.weight.original0.data.fill_(1)
        self.last_layer.parametrizations.weight.original0.requires_grad = False

    def _init_weights(self, m):
        if isinstance(m, nn.Linear):
            nn.init.trunc_normal_(m.weight, std=.02)
            nn.init.constant_(m.bias, 0)

    def forward(self, x):
        x = self.mlp(x)
        x = nn.functional.normalize(x, dim=-1, p=2)
        return self.last_layer(x)


class MultiCropWrapper(nn.Module):
    def __init__(self, backbone, head):
        super().__init__()
        self.backbone = backbone
        self.head = head

    def forward(self, x):
        if not isinstance(x, list):
            x = [x]
        idx_crops = torch.cumsum(torch.unique_consecutive(
            torch.tensor([inp.shape[-1] for inp in x]), return_counts=True)[1], 0)
        start_idx, output = 0, torch.empty(0).to(x[0].device)
        for end_idx in idx_crops:
            _out = self.backbone(torch.cat(x[start_idx: end_idx]))
            output = torch.cat((output, _out))
            start_idx = end_idx
        return self.head(output)


class DINOLoss(nn.Module):
    def __init__(self, out_dim, ncrops, warmup_teacher_temp, teacher_temp, nepochs, student_temp=0.1,
                 center_momentum=0.9):
        super().__init__()
        self.student_temp = student_temp
        self.center_momentum = center_momentum
        self.ncrops = ncrops
        self.register_buffer("center", torch.zeros(1, out_dim))
        self.teacher_temp_schedule = np.linspace(warmup_teacher_temp, teacher_temp, nepochs)

    def forward(self, student_output, teacher_output, epoch):
        student_out = student_output / self.student_temp
        student_out = student_out.chunk(self.ncrops)
        temp = self.teacher_temp_schedule[epoch]
        teacher_out = F.softmax((teacher_output - self.center) / temp, dim=-1)
        teacher_out = teacher_out.detach().chunk(2)
        total_loss = 0
        n_loss_terms = 0
        for iq, q in enumerate(teacher_out):
            for v in range(len(student_out)):
                if v == iq:
                    continue
                loss = torch.sum(-q * F.log_softmax(student_out[v], dim=-1), dim=-1)
                total_loss += loss.mean()
                n_loss_terms += 1
        total_loss /= n_loss_terms
        self.update_center(teacher_output)
        return total_loss

    @torch.no_grad()
    def update_center(self, teacher_output):
        batch_center = torch.sum(teacher_output, dim=0, keepdim=True) / len(teacher_output)
        self.center = self.center * self.center_momentum + batch_center * (1 - self.center_momentum)


def clip_gradients(model, clip):
    norms = []
    for name, p in model.named_parameters():
        if p.grad is not None:
            param_norm = p.grad.data.norm(2)
            norms.append(param_norm.item())
            clip_coef = clip / (param_norm + 1e-6)
            if clip_coef < 1:
                p.grad.data.mul_(clip_coef)
    return norms


def cosine_scheduler(base, final, epochs, niter, warmup_epochs=0):
    warmup = np.linspace(0, base, warmup_epochs * niter)
    iters = np.arange(epochs * niter - len(warmup))
    schedule = final + 0.5 * (base - final) * (1 + np.cos(np.pi * iters / len(iters)))
    return np.concatenate((warmup, schedule))


def get_params_groups(model):
    regularized, not_regularized = [], []
    for name, param in model.named_parameters():
        if not param.requires_grad:
            continue
        (not_regularized if name.endswith(".bias") or len(param.shape) == 1 else regularized).append(param)
    return [{'params': regularized}, {'params': not_regularized, 'weight_decay': 0.}]


def main():
    args = get_args()
    torch.manual_seed(0)
    np.random.seed(0)
    device = torch.device("cuda")
    loader = DataLoader(Images(args.num_images, MultiCrop(args.local_crops_number)), batch_size=args.batch_size,
                        shuffle=True, num_workers=2, pin_memory=True, drop_last=True)
    build = lambda dp: timm.create_model('vit_small_patch16_224', num_classes=0, dynamic_img_size=True, drop_path_rate=dp)
    student, teacher = build(0.1), build(0.0)
    student = MultiCropWrapper(student, DINOHead(384, args.out_dim)).to(device)
    teacher = MultiCropWrapper(teacher, DINOHead(384, args.out_dim)).to(device)
    teacher.load_state_dict(student.state_dict())
    for p in teacher.parameters():
        p.requires_grad = False
    dino_loss = DINOLoss(args.out_dim, args.local_crops_number + 2, args.warmup_teacher_temp, args.teacher_temp,
                         args.epochs).to(device)
    optimizer = torch.optim.AdamW(get_params_groups(student))
    fp16_scaler = torch.amp.GradScaler("cuda")
    lr_schedule = cosine_scheduler(args.lr * args.batch_size / 256., 1e-6, args.epochs, len(loader), 1)
    wd_schedule = cosine_scheduler(0.04, 0.4, args.epochs, len(loader))
    momentum_schedule = cosine_scheduler(args.momentum_teacher, 1, args.epochs, len(loader))

    for epoch in range(args.epochs):
        for it, (images, _) in enumerate(loader):
            it = len(loader) * epoch + it
            for i, param_group in enumerate(optimizer.param_groups):
                param_group["lr"] = lr_schedule[it]
                if i == 0:
                    param_group["weight_decay"] = wd_schedule[it]
            images = [im.to(device, non_blocking=True) for im in images]
            with torch.autocast("cuda", dtype=torch.float16):
                teacher_output = teacher(images[:2])
                student_output = student(images)
                loss = dino_loss(student_output, teacher_output, epoch)
            if not math.isfinite(loss.item()):
                print("Loss is {}, stopping training".format(loss.item()))
                sys.exit(1)
            optimizer.zero_grad()
            fp16_scaler.scale(loss).backward()
            fp16_scaler.unscale_(optimizer)
            clip_gradients(student, args.clip_grad)
            if epoch < args.freeze_last_layer:
                for n, p in student.named_parameters():
                    if "last_layer" in n:
                        p.grad = None
            fp16_scaler.step(optimizer)
            fp16_scaler.update()
            with torch.no_grad():
                m = momentum_schedule[it]
                for param_q, param_k in zip(student.parameters(), teacher.parameters()):
                    param_k.data.mul_(m).add_((1 - m) * param_q.detach().data)
            if it % 5 == 0:
                print(f"epoch {epoch} it {it} loss {loss.item():.4f}")
        torch.save({'student': student.state_dict(), 'teacher': teacher.state_dict(),
                    'optimizer': optimizer.state_dict(), 'epoch': epoch + 1, 'dino_loss': dino_loss.state_dict(),
                    'fp16_scaler': fp16_scaler.state_dict()}, os.path.join(args.output_dir, 'checkpoint.pth'))


if __name__ == '__main__':
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
