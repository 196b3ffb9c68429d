# SPDX-License-Identifier: Apache-2.0
"""Lightning: two validation loaders (one with larger pictures), val_check_interval, ModelCheckpoint, torchmetrics, bf16-mixed."""
import argparse
import os
import tempfile

import lightning as L
import torch
import torch.nn.functional as F
import torchmetrics
import torchvision
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
CLASSES = 50


class Noise(Dataset):
    def __init__(self, n, size):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.randn(3, self.size, self.size, generator=g), i % CLASSES


class Data(L.LightningDataModule):
    def __init__(self, batch_size):
        super().__init__()
        self.batch_size = batch_size
        self.size = 32 if SMALL else 224
        self.workers = 0 if SMALL else 6

    def train_dataloader(self):
        return DataLoader(Noise(self.batch_size * 8, self.size), self.batch_size, shuffle=True, num_workers=self.workers, pin_memory=not SMALL)

    def val_dataloader(self):
        same = DataLoader(Noise(self.batch_size * 2, self.size), self.batch_size, num_workers=self.workers // 2)
        other = DataLoader(Noise(self.batch_size, self.size * 2), self.batch_size, num_workers=self.workers // 2)
        return [same, other]


class Classifier(L.LightningModule):
    def __init__(self, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        build = torchvision.models.shufflenet_v2_x0_5 if SMALL else torchvision.models.convnext_small
        self.net = build(weights=None, num_classes=CLASSES)
        self.train_acc = torchmetrics.Accuracy(task="multiclass", num_classes=CLASSES)
        self.val_metrics = torch.nn.ModuleList([
            torchmetrics.MetricCollection({"acc": torchmetrics.Accuracy(task="multiclass", num_classes=CLASSES), "f1": torchmetrics.F1Score(task="multiclass", num_classes=CLASSES, average="macro"),
                                           "auroc": torchmetrics.AUROC(task="multiclass", num_classes=CLASSES)}, prefix=f"{name}_")
            for name in ("same", "other")])

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, idx):
        x, y = batch
        out = self(x)
        loss = F.cross_entropy(out, y, label_smoothing=0.1)
        self.train_acc(out, y)
        self.log("train_loss", loss, prog_bar=True)
        self.log("train_acc", self.train_acc, on_epoch=True)
        return loss

    def validation_step(self, batch, idx, dataloader_idx=0):
        x, y = batch
        out = self(x)
        self.val_metrics[dataloader_idx].update(out.float(), y)
        self.log("val_loss", F.cross_entropy(out, y), add_dataloader_idx=True)

    def on_validation_epoch_end(self):
        for m in self.val_metrics:
            self.log_dict(m.compute())
            m.reset()

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=0.05)
        sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=self.hparams.lr, total_steps=self.trainer.estimated_stepping_batches)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "step"}}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()
    L.seed_everything(11)
    root = tempfile.mkdtemp()
    trainer = L.Trainer(
        max_epochs=2, accelerator="auto", devices=1, precision="bf16-mixed" if torch.cuda.is_available() else "32-true", val_check_interval=0.5, default_root_dir=root,
        callbacks=[ModelCheckpoint(dirpath=root, monitor="same_acc", mode="max", save_top_k=1), LearningRateMonitor("step")], logger=CSVLogger(root), log_every_n_steps=2, enable_progress_bar=False,
    )
    trainer.fit(Classifier(), datamodule=Data(min(args.batch_size, 8) if SMALL else args.batch_size))
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
