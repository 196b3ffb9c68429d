# SPDX-License-Identifier: Apache-2.0
"""Dense multi-task in Lightning: shared timm RegNet encoder, heads for segmentation, depth and normals, Kendall uncertainty weights, bf16-mixed; validation_step with mIoU, AbsRel and angle."""
import argparse
import os
import tempfile

import lightning as L
import timm
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, Dataset
from torchmetrics import MeanMetric
from torchmetrics.classification import MulticlassJaccardIndex

SMALL = os.environ.get("SMALL") == "1"
CLASSES = 13


class Rooms(Dataset):
    def __init__(self, n, h, w):
        self.n, self.h, self.w = n, h, w

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        seg = torch.randint(0, CLASSES, (1, 1, self.h // 16, self.w // 16), generator=g).float()
        seg = F.interpolate(seg, size=(self.h, self.w))[0, 0].long()
        depth = 0.5 + 9 * torch.rand(1, self.h, self.w, generator=g)
        normal = F.normalize(torch.randn(3, self.h, self.w, generator=g), dim=0)
        return {"image": torch.randn(3, self.h, self.w, generator=g), "seg": seg, "depth": depth, "normal": normal}


class RoomsData(L.LightningDataModule):
    def __init__(self, batch_size, h, w):
        super().__init__()
        self.batch_size, self.h, self.w = batch_size, h, w
        self.workers = 0 if SMALL else 6

    def setup(self, stage=None):
        self.train_set = Rooms(self.batch_size * (2 if SMALL else 7), self.h, self.w)
        self.val_set = Rooms(self.batch_size * 3 - 1, self.h, self.w)

    def train_dataloader(self):
        return DataLoader(self.train_set, self.batch_size, shuffle=True, drop_last=True, num_workers=self.workers)

    def val_dataloader(self):
        return DataLoader(self.val_set, self.batch_size, num_workers=self.workers)


class Head(nn.Module):
    def __init__(self, chans, out, width=128):
        super().__init__()
        self.proj = nn.ModuleList(nn.Conv2d(c, width, 1) for c in chans)
        self.fuse = nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.GELU(), nn.Conv2d(width, out, 1))

    def forward(self, feats, size):
        x = 0
        for f, p in zip(feats, self.proj):
            x = x + F.interpolate(p(f), size=feats[0].shape[-2:], mode="bilinear", align_corners=False)
        return F.interpolate(self.fuse(x), size=size, mode="bilinear", align_corners=False)


class MultiTask(L.LightningModule):
    def __init__(self, backbone, lr=2e-4, max_steps=100):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = timm.create_model(backbone, pretrained=False, features_only=True, out_indices=(1, 2, 3, 4))
        chans = self.encoder.feature_info.channels()
        self.heads = nn.ModuleDict({"seg": Head(chans, CLASSES), "depth": Head(chans, 1), "normal": Head(chans, 3)})
        self.log_vars = nn.ParameterDict({k: nn.Parameter(torch.zeros(())) for k in self.heads})
        self.iou = MulticlassJaccardIndex(CLASSES)
        self.absrel, self.angle = MeanMetric(), MeanMetric()

    def forward(self, x):
        feats = self.encoder(x)
        return {k: h(feats, x.shape[-2:]) for k, h in self.heads.items()}

    def losses(self, out, batch):
        return {
            "seg": F.cross_entropy(out["seg"], batch["seg"]),
            "depth": F.l1_loss(out["depth"].float(), batch["depth"].log()),
            "normal": 1 - F.cosine_similarity(out["normal"].float(), batch["normal"]).mean(),
        }

    def total(self, losses):
        return sum(torch.exp(-self.log_vars[k]) * v + self.log_vars[k] for k, v in losses.items())

    def training_step(self, batch, batch_idx):
        losses = self.losses(self(batch["image"]), batch)
        loss = self.total(losses)
        self.log_dict({f"train/{k}": v for k, v in losses.items()})
        self.log("train/loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        out = self(batch["image"])
        losses = self.losses(out, batch)
        self.log("val/loss", sum(losses.values()), prog_bar=True, batch_size=len(batch["image"]))
        self.iou.update(out["seg"], batch["seg"])
        self.absrel.update(((out["depth"].float().exp() - batch["depth"]).abs() / batch["depth"]).mean())
        self.angle.update(torch.rad2deg(torch.acos(F.cosine_similarity(out["normal"].float(), batch["normal"]).clamp(-1, 1))).mean())
        self.log("val/miou", self.iou, on_epoch=True)
        self.log("val/absrel", self.absrel, on_epoch=True)
        self.log("val/angle", self.angle, on_epoch=True)

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=0.01)
        sched = torch.optim.lr_scheduler.PolynomialLR(opt, total_iters=self.hparams.max_steps, power=0.9)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "step"}}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=12)
    ap.add_argument("--epochs", type=int, default=2)
    args = ap.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    L.seed_everything(0)
    if SMALL:
        args.batch_size = min(args.batch_size, 2)
    h, w = (64, 96) if SMALL else (480, 640)
    folder = tempfile.mkdtemp()
    trainer = L.Trainer(
        max_epochs=args.epochs, accelerator="gpu" if device == "cuda" else "cpu", devices=1, precision="bf16-mixed" if device == "cuda" else "32-true",
        gradient_clip_val=1.0, logger=CSVLogger(folder), enable_progress_bar=False, log_every_n_steps=2,
        callbacks=[ModelCheckpoint(folder, monitor="val/miou", mode="max", save_top_k=1), LearningRateMonitor("step")],
    )
    model = MultiTask("regnetx_002" if SMALL else "regnety_016", max_steps=args.epochs * 7)
    trainer.fit(model, datamodule=RoomsData(args.batch_size, h, w))
    print({k: round(float(v), 4) for k, v in trainer.callback_metrics.items()})


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
