# SPDX-License-Identifier: Apache-2.0
"""Ordinal regression (CORAL) of retinopathy grades in Lightning: torchvision EfficientNet-B3, RMSprop, 16-mixed, accumulation; quadratic kappa and MAE in validation."""
import argparse
import os
import tempfile

import lightning.pytorch as pl
import torch
import torch.nn.functional as F
import torchmetrics
import torchvision
from torch import nn
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
GRADES = 5


class Fundus(Dataset):
    def __init__(self, n, size, seed):
        g = torch.Generator().manual_seed(seed)
        self.grade = torch.multinomial(torch.tensor([0.5, 0.1, 0.25, 0.1, 0.05]), n, replacement=True, generator=g)
        self.size = size
        r = torch.linspace(-1, 1, size)
        self.disc = ((r[:, None] ** 2 + r[None] ** 2) < 1).float()

    def __len__(self):
        return len(self.grade)

    def __getitem__(self, i):
        return (torch.randn(3, self.size, self.size) * 0.2 + 0.1 * self.grade[i]) * self.disc, self.grade[i]


class CoralHead(nn.Module):
    """One weight vector, K-1 biases."""

    def __init__(self, n_in, k):
        super().__init__()
        self.fc = nn.Linear(n_in, 1, bias=False)
        self.bias = nn.Parameter(torch.arange(k - 1, 0, -1).float() / (k - 1))

    def forward(self, x):
        return self.fc(x) + self.bias


def coral_loss(logits, y):
    levels = (y[:, None] > torch.arange(GRADES - 1, device=y.device)).float()
    return -(F.logsigmoid(logits) * levels + (F.logsigmoid(logits) - logits) * (1 - levels)).sum(1).mean()


class Grader(pl.LightningModule):
    def __init__(self, arch, lr):
        super().__init__()
        self.lr = lr
        self.net = getattr(torchvision.models, arch)(weights=None)
        last = self.net.classifier[-1]
        self.net.classifier[-1] = CoralHead(last.in_features, GRADES)
        self.kappa = torchmetrics.CohenKappa(task="multiclass", num_classes=GRADES, weights="quadratic")
        self.mae = torchmetrics.MeanAbsoluteError()
        self.acc = torchmetrics.Accuracy(task="multiclass", num_classes=GRADES)

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, _):
        x, y = batch
        loss = coral_loss(self(x).float(), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        logits = self(x).float()
        grade = (logits.sigmoid() > 0.5).sum(1)
        self.kappa(grade, y)
        self.mae(grade.float(), y.float())
        self.acc(grade, y)
        self.log("val_loss", coral_loss(logits, y), on_epoch=True, batch_size=len(y))
        self.log_dict({"val_kappa": self.kappa, "val_mae": self.mae, "val_acc": self.acc}, on_step=False, on_epoch=True)

    def configure_optimizers(self):
        opt = torch.optim.RMSprop(self.parameters(), lr=self.lr, alpha=0.9, momentum=0.9, eps=1e-3, weight_decay=1e-5)
        return [opt], [torch.optim.lr_scheduler.ExponentialLR(opt, 0.97)]


class PrintMetrics(pl.Callback):
    def on_validation_epoch_end(self, trainer, module):
        if not trainer.sanity_checking:
            print(f"epoch {trainer.current_epoch}:", {k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=48)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--max-epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    pl.seed_everything(2024, workers=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if SMALL:
        args.batch_size = min(args.batch_size, 2)
    size = 64 if SMALL else 300
    w = 0 if SMALL else 8
    train = DataLoader(Fundus(args.batch_size * (4 if SMALL else 12), size, 0), args.batch_size, shuffle=True, num_workers=w, drop_last=True)
    val = DataLoader(Fundus(args.batch_size * 5, size, 1), args.batch_size * 2, num_workers=w)
    trainer = pl.Trainer(
        max_epochs=args.max_epochs, accelerator="auto", devices=1, precision="16-mixed" if device == "cuda" else 32, accumulate_grad_batches=args.accumulate,
        default_root_dir=tempfile.mkdtemp(), logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        num_sanity_val_steps=0, callbacks=[PrintMetrics()],
    )
    trainer.fit(Grader("efficientnet_b0" if SMALL else "efficientnet_b3", args.lr), train, val)
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
