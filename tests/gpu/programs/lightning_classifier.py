# SPDX-License-Identifier: Apache-2.0
"""Lightning, fp32: an image classifier with validation and torchmetrics."""
import argparse
import os

import lightning as L
import torch
import torch.nn.functional as F
import torchmetrics
import torchvision
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"


class Fake(Dataset):
    def __init__(self, n, size, classes):
        self.n, self.size, self.classes = n, size, classes

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.randn(3, self.size, self.size, generator=g), i % self.classes


class Classifier(L.LightningModule):
    def __init__(self, classes=120, lr=0.05):
        super().__init__()
        self.save_hyperparameters()
        self.net = torchvision.models.resnet18(num_classes=classes) if SMALL else torchvision.models.regnet_y_1_6gf(num_classes=classes)
        self.accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=classes)

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, index):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        out = self(x)
        self.accuracy(out, y)
        self.log("val_loss", F.cross_entropy(out, y))
        self.log("val_acc", self.accuracy)

    def configure_optimizers(self):
        opt = torch.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(opt, 3)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=40)
    args = parser.parse_args()
    torch.manual_seed(0)
    L.seed_everything(0)
    size = 64 if SMALL else 256
    train = DataLoader(Fake(args.batch_size * 3, size, 120), batch_size=args.batch_size, shuffle=True, num_workers=2, persistent_workers=True)
    valid = DataLoader(Fake(args.batch_size * 2, size, 120), batch_size=args.batch_size, num_workers=2)
    trainer = L.Trainer(max_epochs=2, accelerator="auto", devices=1, logger=False, enable_checkpointing=False, log_every_n_steps=1)
    trainer.fit(Classifier(), train, valid)


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
