"""ShuffleNetV2 x2.0 plant disease classifier in Lightning: DataModule, torchmetrics, SGD + OneCycle, fp32."""
import tempfile

import pytorch_lightning as pl
import torch
import torch.nn.functional as F
import torchmetrics
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import FakeData
from torchvision.models import shufflenet_v2_x2_0


class PlantDataModule(pl.LightningDataModule):
    def __init__(self, batch_size=64, size=224, n_train=640, n_val=128, num_classes=38):
        super().__init__()
        self.save_hyperparameters()
        self.norm = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])

    def setup(self, stage=None):
        hp = self.hparams
        train_tf = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.RandomVerticalFlip(),
                                       transforms.ToTensor(), self.norm])
        eval_tf = transforms.Compose([transforms.ToTensor(), self.norm])
        shape = (3, hp.size, hp.size)
        self.train_ds = FakeData(hp.n_train, shape, hp.num_classes, train_tf)
        self.val_ds = FakeData(hp.n_val, shape, hp.num_classes, eval_tf, random_offset=5000)
        self.test_ds = FakeData(hp.n_val, shape, hp.num_classes, eval_tf, random_offset=9000)

    def train_dataloader(self):
        return DataLoader(self.train_ds, batch_size=self.hparams.batch_size, shuffle=True, num_workers=2,
                          pin_memory=True)

    def val_dataloader(self):
        return DataLoader(self.val_ds, batch_size=self.hparams.batch_size, num_workers=2, pin_memory=True)

    def test_dataloader(self):
        return DataLoader(self.test_ds, batch_size=self.hparams.batch_size, num_workers=2, pin_memory=True)


class PlantClassifier(pl.LightningModule):
    def __init__(self, num_classes=38, lr=0.05):
        super().__init__()
        self.save_hyperparameters()
        self.model = shufflenet_v2_x2_0(num_classes=num_classes)
        self.train_acc = torchmetrics.Accuracy(task="multiclass", num_classes=num_classes)
        self.val_acc = torchmetrics.Accuracy(task="multiclass", num_classes=num_classes)
        self.test_acc = torchmetrics.Accuracy(task="multiclass", num_classes=num_classes)

    def forward(self, x):
        return self.model(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        self.train_acc(logits, y)
        self.log("train/loss", loss)
        self.log("train/acc", self.train_acc, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.val_acc(logits, y)
        self.log("val_loss", F.cross_entropy(logits, y), prog_bar=True)
        self.log("val_acc", self.val_acc, prog_bar=True)

    def test_step(self, batch, batch_idx):
        x, y = batch
        self.test_acc(self(x), y)
        self.log("test_acc", self.test_acc)

    def configure_optimizers(self):
        opt = torch.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9, weight_decay=4e-5)
        sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=self.hparams.lr,
                                                    total_steps=self.trainer.estimated_stepping_batches)
        return [opt], [{"scheduler": sched, "interval": "step"}]


if __name__ == "__main__":
    pl.seed_everything(42, workers=True)
    dm = PlantDataModule()
    model = PlantClassifier()
    with tempfile.TemporaryDirectory() as tmp:
        trainer = pl.Trainer(
            max_epochs=2, accelerator="auto", devices=1, default_root_dir=tmp, logger=False, log_every_n_steps=5,
            callbacks=[ModelCheckpoint(dirpath=tmp, monitor="val_loss"), EarlyStopping("val_loss", patience=5)],
        )
        trainer.fit(model, datamodule=dm)
        print(trainer.test(model, datamodule=dm, ckpt_path="best", weights_only=False))
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
