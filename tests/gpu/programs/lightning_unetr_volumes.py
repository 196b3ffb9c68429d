"""UNETR organ segmentation of CT-like volumes with Lightning, bf16-mixed, Dice + cross entropy."""
import argparse

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CLASSES = 4


class Volumes(Dataset):
    """Ellipsoid organs of differing brightness in noise; made once."""

    def __init__(self, n, size, seed):
        g = torch.Generator().manual_seed(seed)
        ax = torch.arange(size).float()
        zz, yy, xx = ax[:, None, None], ax[None, :, None], ax[None, None, :]
        self.images, self.labels = [], []
        for _ in range(n):
            label = torch.zeros(size, size, size, dtype=torch.uint8)
            for c in range(1, CLASSES):
                centre = size * (0.25 + 0.5 * torch.rand(3, generator=g))
                r = size * (0.08 + 0.14 * torch.rand(3, generator=g))
                inside = ((zz - centre[0]) / r[0]) ** 2 + ((yy - centre[1]) / r[1]) ** 2 + ((xx - centre[2]) / r[2]) ** 2 < 1
                label[inside] = c
            self.labels.append(label)
            self.images.append((label.half() * 0.4).contiguous())

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = self.images[i].float()
        image = image + 0.3 * torch.randn_like(image)
        return image[None], self.labels[i].long()


class Up(nn.Sequential):
    def __init__(self, i, o, times=1):
        layers = []
        for k in range(times):
            layers += [nn.ConvTranspose3d(i if k == 0 else o, o, 2, 2), nn.Conv3d(o, o, 3, padding=1, bias=False), nn.InstanceNorm3d(o, affine=True), nn.LeakyReLU(0.01)]
        super().__init__(*layers)


class ConvBlock(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.c1, self.c2 = nn.Conv3d(i, o, 3, padding=1, bias=False), nn.Conv3d(o, o, 3, padding=1, bias=False)
        self.n1, self.n2 = nn.InstanceNorm3d(o, affine=True), nn.InstanceNorm3d(o, affine=True)
        self.skip = nn.Conv3d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x):
        y = F.leaky_relu(self.n1(self.c1(x)), 0.01)
        return F.leaky_relu(self.n2(self.c2(y)) + self.skip(x), 0.01)


class UNETR(nn.Module):
    def __init__(self, size, f=16, dim=384, depth=12, heads=6, patch=16):
        super().__init__()
        self.grid, self.dim = size // patch, dim
        self.patch = nn.Conv3d(1, dim, patch, patch)
        self.pos = nn.Parameter(torch.zeros(1, self.grid ** 3, dim))
        self.blocks = nn.ModuleList([nn.TransformerEncoderLayer(dim, heads, 4 * dim, 0.0, "gelu", batch_first=True, norm_first=True) for _ in range(depth)])
        self.taps = [depth // 4 - 1, depth // 2 - 1, 3 * depth // 4 - 1]
        self.e0 = ConvBlock(1, f)
        self.e1, self.e2, self.e3 = Up(dim, 2 * f, 3), Up(dim, 4 * f, 2), Up(dim, 8 * f, 1)
        self.u3, self.u2, self.u1, self.u0 = (nn.ConvTranspose3d(dim, 8 * f, 2, 2), nn.ConvTranspose3d(8 * f, 4 * f, 2, 2),
                                             nn.ConvTranspose3d(4 * f, 2 * f, 2, 2), nn.ConvTranspose3d(2 * f, f, 2, 2))
        self.d3, self.d2, self.d1, self.d0 = ConvBlock(16 * f, 8 * f), ConvBlock(8 * f, 4 * f), ConvBlock(4 * f, 2 * f), ConvBlock(2 * f, f)
        self.out = nn.Conv3d(f, CLASSES, 1)

    def forward(self, x):
        t = self.patch(x).flatten(2).transpose(1, 2) + self.pos
        skips = []
        for i, blk in enumerate(self.blocks):
            t = blk(t)
            if i in self.taps:
                skips.append(self.fold(t))
        y = self.d3(torch.cat([self.u3(self.fold(t)), self.e3(skips[2])], 1))
        y = self.d2(torch.cat([self.u2(y), self.e2(skips[1])], 1))
        y = self.d1(torch.cat([self.u1(y), self.e1(skips[0])], 1))
        y = self.d0(torch.cat([self.u0(y), self.e0(x)], 1))
        return self.out(y)

    def fold(self, t):
        return t.transpose(1, 2).reshape(len(t), self.dim, self.grid, self.grid, self.grid)


def dice_per_class(prob, onehot):
    inter = (prob * onehot).sum((0, 2, 3, 4))
    return (2 * inter + 1e-5) / (prob.sum((0, 2, 3, 4)) + onehot.sum((0, 2, 3, 4)) + 1e-5)


class Segmenter(L.LightningModule):
    def __init__(self, size, lr, features, depth, epochs):
        super().__init__()
        self.save_hyperparameters()
        self.net = UNETR(size, features, depth=depth)

    def training_step(self, batch, idx):
        x, y = batch
        logits = self.net(x).float()
        onehot = F.one_hot(y, CLASSES).permute(0, 4, 1, 2, 3).float()
        dice = dice_per_class(logits.softmax(1), onehot)
        loss = F.cross_entropy(logits, y) + 1 - dice[1:].mean()
        self.log("train_loss", loss, prog_bar=False)
        return loss

    def validation_step(self, batch, idx):
        x, y = batch
        pred = F.one_hot(self.net(x).argmax(1), CLASSES).permute(0, 4, 1, 2, 3).float()
        onehot = F.one_hot(y, CLASSES).permute(0, 4, 1, 2, 3).float()
        self.log("val_dice", dice_per_class(pred, onehot)[1:].mean(), on_epoch=True, batch_size=len(x))

    def on_validation_epoch_end(self):
        print(f"epoch {self.current_epoch} val dice {self.trainer.callback_metrics['val_dice'].item():.4f}", flush=True)

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=1e-5)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(opt, self.hparams.epochs)}


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=2)
    ap.add_argument("--size", type=int, default=96)
    ap.add_argument("--features", type=int, default=32)
    ap.add_argument("--depth", type=int, default=12)
    ap.add_argument("--volumes", type=int, default=64)
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--workers", type=int, default=3)
    a = ap.parse_args()
    L.seed_everything(5)
    train = DataLoader(Volumes(a.volumes, a.size, 1), a.batch_size, shuffle=True, num_workers=a.workers, persistent_workers=a.workers > 0)
    val = DataLoader(Volumes(max(2, a.volumes // 8), a.size, 2), 1)
    trainer = L.Trainer(max_epochs=a.epochs, accelerator="auto", devices=1, precision="bf16-mixed", accumulate_grad_batches=2,
                        gradient_clip_val=1.0, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                        enable_model_summary=False, num_sanity_val_steps=1)
    trainer.fit(Segmenter(a.size, 3e-4, a.features, a.depth, a.epochs), train, val)
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
