"""Action recognition with torchvision MViTv2-S clips, mixup, bf16-mixed Lightning."""
import argparse
import tempfile

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, Dataset
from torchmetrics.classification import MulticlassAccuracy
from torchvision.models.video import mvit_v2_s
from torchvision.transforms import v2


class Clips(Dataset):
    def __init__(self, n, classes, frames, size, seed, train):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, classes, (n,), generator=g)
        self.bank = torch.randint(0, 256, (8, frames, 3, size + 32, size + 32), generator=g, dtype=torch.uint8)
        crop = v2.RandomCrop(size) if train else v2.CenterCrop(size)
        self.tf = v2.Compose([crop, v2.RandomHorizontalFlip() if train else v2.Identity()])

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = self.tf(self.bank[i % len(self.bank)]).float().div_(255).sub_(0.45).div_(0.225)
        return x.transpose(0, 1), self.y[i]


class VideoClassifier(L.LightningModule):
    def __init__(self, classes, lr, epochs, model=None):
        super().__init__()
        self.save_hyperparameters(ignore="model")
        self.model = model if model is not None else mvit_v2_s(weights=None, num_classes=classes, stochastic_depth_prob=0.1)
        self.beta = torch.distributions.Beta(0.8, 0.8)
        self.top1 = MulticlassAccuracy(classes, average="micro")
        self.top5 = MulticlassAccuracy(classes, top_k=5, average="micro")

    def forward(self, x):
        return self.model(x)

    def training_step(self, batch, _):
        x, y = batch
        lam = float(self.beta.sample())
        perm = torch.randperm(x.size(0), device=x.device)
        logits = self(lam * x + (1 - lam) * x[perm])
        loss = lam * F.cross_entropy(logits, y, label_smoothing=0.1) + (1 - lam) * F.cross_entropy(logits, y[perm], label_smoothing=0.1)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        logits = self(x)
        self.top1(logits, y)
        self.top5(logits, y)
        self.log("val_loss", F.cross_entropy(logits, y), prog_bar=True)
        self.log("val_top1", self.top1, prog_bar=True)
        self.log("val_top5", self.top5)

    def configure_optimizers(self):
        decay, no_decay = [], []
        for n, p in self.model.named_parameters():
            (no_decay if p.ndim == 1 or "pos_encoding" in n or "class_token" in n else decay).append(p)
        opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05}, {"params": no_decay, "weight_decay": 0.0}], lr=self.hparams.lr)
        warm = torch.optim.lr_scheduler.LinearLR(opt, 0.01, total_iters=5)
        cos = torch.optim.lr_scheduler.CosineAnnealingLR(opt, self.trainer.estimated_stepping_batches)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": torch.optim.lr_scheduler.SequentialLR(opt, [warm, cos], [5]), "interval": "step"}}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--frames", type=int, default=16)
    ap.add_argument("--size", type=int, default=224)
    ap.add_argument("--classes", type=int, default=101)
    ap.add_argument("--batch", type=int, default=4)
    ap.add_argument("--n_train", type=int, default=96)
    ap.add_argument("--epochs", type=int, default=2)
    args = ap.parse_args()
    L.seed_everything(0)
    train = DataLoader(Clips(args.n_train, args.classes, args.frames, args.size, 0, True), args.batch, shuffle=True, num_workers=2, drop_last=True, persistent_workers=True)
    val = DataLoader(Clips(args.n_train // 4, args.classes, args.frames, args.size, 1, False), args.batch, num_workers=1)
    tmp = tempfile.mkdtemp()
    trainer = L.Trainer(max_epochs=args.epochs, accelerator="auto", devices=1, precision="bf16-mixed", gradient_clip_val=1.0, logger=CSVLogger(tmp),
                        default_root_dir=tmp, log_every_n_steps=5,
                        callbacks=[ModelCheckpoint(tmp, monitor="val_top1", mode="max"), LearningRateMonitor("step")])
    trainer.fit(VideoClassifier(args.classes, 2e-4, args.epochs), train, val)
    print(trainer.validate(ckpt_path="best", dataloaders=val))
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
