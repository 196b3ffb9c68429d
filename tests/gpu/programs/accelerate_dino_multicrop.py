"""DINO self-distillation with multi-crop on ViT-S/16 (timm backbone), bf16 through accelerate."""
import argparse
import math
import tempfile

import timm
import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

ap = argparse.ArgumentParser()
ap.add_argument("--arch", default="vit_small_patch16_224")
ap.add_argument("--out_dim", type=int, default=16384)
ap.add_argument("--local_crops", type=int, default=6)
ap.add_argument("--batch_size", type=int, default=24)
ap.add_argument("--n", type=int, default=384)
ap.add_argument("--epochs", type=int, default=2)
ap.add_argument("--lr", type=float, default=5e-4)
ap.add_argument("--momentum_teacher", type=float, default=0.996)
ap.add_argument("--freeze_last_layer", type=int, default=1)
ap.add_argument("--image_size", type=int, default=224)
ap.add_argument("--local_size", type=int, default=96)
args = ap.parse_args()


class MultiCrop(Dataset):
    def __init__(self, n):
        self.low = (torch.rand(n, 3, 64, 64, generator=torch.Generator().manual_seed(0)) * 255).to(torch.uint8)
        flip = v2.Compose([v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.25] * 3)])
        self.global_t = v2.Compose([v2.RandomResizedCrop(args.image_size, scale=(0.4, 1.0), antialias=True), flip])
        self.local_t = v2.Compose([v2.RandomResizedCrop(args.local_size, scale=(0.05, 0.4), antialias=True), flip])

    def __len__(self):
        return len(self.low)

    def __getitem__(self, i):
        return [self.global_t(self.low[i]) for _ in range(2)] + [self.local_t(self.low[i]) for _ in range(args.local_crops)]


class DINOHead(nn.Module):
    def __init__(self, in_dim, out_dim, hidden=2048, bottleneck=256):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(in_dim, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, bottleneck))
        self.last_layer = nn.utils.parametrizations.weight_norm(nn.Linear(bottleneck, out_dim, bias=False))
        self.last_layer.parametrizations.weight.original0.data.fill_(1)
        self.last_layer.parametrizations.weight.original0.requires_grad = False

    def forward(self, x):
        return self.last_layer(F.normalize(self.mlp(x), dim=-1))


class MultiCropWrapper(nn.Module):
    def __init__(self, backbone, head):
        super().__init__()
        self.backbone, self.head = backbone, head

    def forward(self, x):
        sizes = torch.tensor([c.shape[-1] for c in x])
        idx = torch.cumsum(torch.unique_consecutive(sizes, return_counts=True)[1], 0)
        start, output = 0, []
        for end in idx:
            output.append(self.backbone(torch.cat(x[start:end])))
            start = end
        return self.head(torch.cat(output))


class DINOLoss(nn.Module):
    def __init__(self, out_dim, ncrops, teacher_temp=0.04, student_temp=0.1, center_momentum=0.9):
        super().__init__()
        self.ncrops, self.teacher_temp, self.student_temp, self.m = ncrops, teacher_temp, student_temp, center_momentum
        self.register_buffer("center", torch.zeros(1, out_dim))

    def forward(self, student, teacher):
        s = (student / self.student_temp).chunk(self.ncrops)
        t = F.softmax((teacher - self.center) / self.teacher_temp, dim=-1).detach().chunk(2)
        total, n = 0, 0
        for iq, q in enumerate(t):
            for v in range(len(s)):
                if v == iq:
                    continue
                total = total + torch.sum(-q * F.log_softmax(s[v], dim=-1), dim=-1).mean()
                n += 1
        self.update_center(teacher)
        return total / n

    @torch.no_grad()
    def update_center(self, teacher):
        self.center = self.center * self.m + teacher.mean(0, keepdim=True) * (1 - self.m)


def main():
    accelerator = Accelerator(mixed_precision="bf16")
    set_seed(0)
    backbone = timm.create_model(args.arch, num_classes=0, drop_path_rate=0.1, dynamic_img_size=True)
    t_backbone = timm.create_model(args.arch, num_classes=0, dynamic_img_size=True)
    student = MultiCropWrapper(backbone, DINOHead(backbone.num_features, args.out_dim))
    teacher = MultiCropWrapper(t_backbone, DINOHead(backbone.num_features, args.out_dim))
    teacher.load_state_dict(student.state_dict())
    teacher.requires_grad_(False)
    teacher.to(accelerator.device)

    loader = DataLoader(MultiCrop(args.n), batch_size=args.batch_size, shuffle=True, drop_last=True, num_workers=2)
    regularized = [p for n, p in student.named_parameters() if p.requires_grad and p.ndim > 1 and not n.endswith(".bias")]
    rest = [p for n, p in student.named_parameters() if p.requires_grad and not (p.ndim > 1 and not n.endswith(".bias"))]
    optimizer = torch.optim.AdamW([{"params": regularized}, {"params": rest, "weight_decay": 0.0}], lr=args.lr, weight_decay=0.04)
    criterion = DINOLoss(args.out_dim, args.local_crops + 2).to(accelerator.device)
    student, optimizer, loader = accelerator.prepare(student, optimizer, loader)
    total = args.epochs * len(loader)
    it = 0
    for epoch in range(args.epochs):
        student.train()
        running = 0.0
        for crops in loader:
            cos = 0.5 * (1 + math.cos(math.pi * it / total))
            for i, g in enumerate(optimizer.param_groups):
                g["lr"] = 1e-6 + (args.lr - 1e-6) * cos
                if i == 0:
                    g["weight_decay"] = 0.4 + (0.04 - 0.4) * cos
            with torch.no_grad(), accelerator.autocast():
                teacher_out = teacher(crops[:2])
            student_out = student(crops)
            loss = criterion(student_out, teacher_out.float())
            if not math.isfinite(loss.item()):
                raise RuntimeError("loss is not finite")
            optimizer.zero_grad()
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(student.parameters(), 3.0)
            if epoch < args.freeze_last_layer:
                for n, p in accelerator.unwrap_model(student).named_parameters():
                    if "last_layer" in n:
                        p.grad = None
            optimizer.step()
            m = 1 - (1 - args.momentum_teacher) * (math.cos(math.pi * it / total) + 1) / 2
            with torch.no_grad():
                for q, k in zip(accelerator.unwrap_model(student).parameters(), teacher.parameters()):
                    k.data.mul_(m).add_((1 - m) * q.detach().data)
            running += loss.item()
            it += 1
        print(f"epoch {epoch} loss {running / len(loader):.4f}")
        torch.save({"student": accelerator.unwrap_model(student).state_dict(), "teacher": teacher.state_dict(), "optimizer": optimizer.state_dict(),
                    "dino_loss": criterion.state_dict()}, tempfile.mkdtemp() + "/checkpoint.pth")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
