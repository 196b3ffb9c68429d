"""Person keypoints by coordinate classification (SimCC) on a timm HRNet, fp16 with GradScaler, PCK each epoch."""
import argparse

import timm
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

JOINTS, H, W, SPLIT = 17, 256, 192, 2


class StickPeople(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        mean = torch.rand(JOINTS, 2, generator=torch.Generator().manual_seed(0)) * 0.6 + 0.2
        self.joints = (mean + 0.08 * torch.randn(n, JOINTS, 2, generator=g)).clamp(0.02, 0.98) * torch.tensor([W, H])
        self.visible = torch.rand(n, JOINTS, generator=g) > 0.15
        self.noise = torch.rand(3, 2 * H, 2 * W, generator=g) * 0.4
        self.colors = torch.rand(JOINTS, 3, generator=torch.Generator().manual_seed(1)) * 0.6 + 0.4

    def __len__(self):
        return len(self.joints)

    def __getitem__(self, i):
        oy, ox = (i * 13) % H, (i * 29) % W
        img = self.noise[:, oy:oy + H, ox:ox + W].clone()
        for (x, y), vis, c in zip(self.joints[i].int().tolist(), self.visible[i].tolist(), self.colors):
            if vis:
                img[:, max(0, y - 5):y + 6, max(0, x - 5):x + 6] = c[:, None, None]
        return img, self.joints[i], self.visible[i].float()


def encode(joints, sigma=6.0):
    """Gaussian labels over the bins of each axis."""
    def axis(coord, size):
        bins = torch.arange(size * SPLIT, device=coord.device).float()
        g = torch.exp(-(bins - coord[..., None] * SPLIT) ** 2 / (2 * sigma ** 2))
        return g / g.sum(-1, keepdim=True)
    return axis(joints[..., 0], W), axis(joints[..., 1], H)


class SimCC(nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self.backbone = timm.create_model(backbone, pretrained=False, features_only=True, out_indices=(1, 2, 3, 4))
        chans = self.backbone.feature_info.channels()
        self.mix = nn.ModuleList([nn.Conv2d(c, 128, 1) for c in chans])
        self.to_joints = nn.Sequential(nn.BatchNorm2d(128), nn.ReLU(inplace=True), nn.Conv2d(128, JOINTS, 1))
        self.attn = nn.TransformerEncoderLayer(256, 4, 512, batch_first=True, norm_first=True, dropout=0.0)
        self.embed = nn.Linear(H // 4 * W // 4, 256)
        self.x, self.y = nn.Linear(256, W * SPLIT), nn.Linear(256, H * SPLIT)

    def forward(self, img):
        feats = self.backbone(img)
        size = feats[0].shape[2:]
        f = sum(F.interpolate(m(z), size=size, mode="bilinear", align_corners=False) for m, z in zip(self.mix, feats))
        tokens = self.attn(self.embed(self.to_joints(f).flatten(2)))
        return self.x(tokens), self.y(tokens)


def loss_fn(px, py, joints, visible):
    tx, ty = encode(joints)
    kl = lambda p, t: F.kl_div(p.float().log_softmax(-1), t, reduction="none").sum(-1)
    return ((kl(px, tx) + kl(py, ty)) * visible).sum() / visible.sum().clamp(min=1)


def pck(pred, joints, visible, thr=0.05):
    ok = (pred - joints).norm(dim=-1) < thr * H
    return (ok * visible).sum().item() / visible.sum().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--backbone", default="hrnet_w32")
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--eval-batch-size", type=int, default=128)
    ap.add_argument("--images", type=int, default=3200)
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--workers", type=int, default=3)
    args = ap.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    train = DataLoader(StickPeople(args.images, 1), args.batch_size, shuffle=True, num_workers=args.workers, drop_last=True, pin_memory=device.type == "cuda")
    val = DataLoader(StickPeople(args.images // 8, 2), args.eval_batch_size, num_workers=args.workers)
    model = SimCC(args.backbone).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.05)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, epochs=args.epochs, steps_per_epoch=len(train))
    scaler = torch.amp.GradScaler(device.type)
    for epoch in range(args.epochs):
        model.train()
        mean = 0.0
        for img, joints, visible in train:
            img, joints, visible = img.to(device, non_blocking=True), joints.to(device), visible.to(device)
            with torch.autocast(device.type, dtype=torch.float16):
                px, py = model(img)
                loss = loss_fn(px, py, joints, visible)
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            mean += loss.item() / len(train)
        model.eval()
        preds, truths, vis = [], [], []
        with torch.no_grad(), torch.autocast(device.type, dtype=torch.float16):
            for img, joints, visible in val:
                px, py = model(img.to(device))
                fx, fy = model(img.to(device).flip(3)) if epoch == args.epochs - 1 else (px, py)
                fx = fx.flip(2) if fx is not px else fx
                preds.append(torch.stack([(px + fx).argmax(-1), (py + fy).argmax(-1)], -1).float().cpu() / SPLIT)
                truths.append(joints)
                vis.append(visible)
        print(f"epoch {epoch} loss {mean:.4f} PCK@0.05 {pck(torch.cat(preds), torch.cat(truths), torch.cat(vis)):.4f}", flush=True)


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
