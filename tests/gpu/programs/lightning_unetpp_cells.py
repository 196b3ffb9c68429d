"""UNet++ cell segmentation in Lightning, 16-mixed, BCE + Dice, ReduceLROnPlateau."""
import tempfile

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, Dataset

IMG = 256
BATCH = 16
N_TRAIN = 192
N_VAL = 48
EPOCHS = 3


class Cells(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.seeds = torch.rand(n, 1, 1, 16, 16, generator=g)

    def __len__(self):
        return len(self.seeds)

    def __getitem__(self, i):
        blob = F.interpolate(self.seeds[i], size=(IMG, IMG), mode="bicubic")[0]
        mask = (blob > 0.6).float()
        image = blob.repeat(3, 1, 1) + 0.1 * torch.randn(3, IMG, IMG)
        return image, mask


class VGGBlock(nn.Module):
    def __init__(self, cin, mid, cout):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, mid, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(mid)
        self.conv2 = nn.Conv2d(mid, cout, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(cout)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(x)))


class NestedUNet(nn.Module):
    def __init__(self, num_classes=1, cin=3, deep_supervision=True):
        super().__init__()
        f = [32, 64, 128, 256, 512]
        self.deep_supervision = deep_supervision
        self.pool = nn.MaxPool2d(2, 2)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.conv0_0 = VGGBlock(cin, f[0], f[0])
        self.conv1_0 = VGGBlock(f[0], f[1], f[1])
        self.conv2_0 = VGGBlock(f[1], f[2], f[2])
        self.conv3_0 = VGGBlock(f[2], f[3], f[3])
        self.conv4_0 = VGGBlock(f[3], f[4], f[4])
        self.conv0_1 = VGGBlock(f[0] + f[1], f[0], f[0])
        self.conv1_1 = VGGBlock(f[1] + f[2], f[1], f[1])
        self.conv2_1 = VGGBlock(f[2] + f[3], f[2], f[2])
        self.conv3_1 = VGGBlock(f[3] + f[4], f[3], f[3])
        self.conv0_2 = VGGBlock(f[0] * 2 + f[1], f[0], f[0])
        self.conv1_2 = VGGBlock(f[1] * 2 + f[2], f[1], f[1])
        self.conv2_2 = VGGBlock(f[2] * 2 + f[3], f[2], f[2])
        self.conv0_3 = VGGBlock(f[0] * 3 + f[1], f[0], f[0])
        self.conv1_3 = VGGBlock(f[1] * 3 + f[2], f[1], f[1])
        self.conv0_4 = VGGBlock(f[0] * 4 + f[1], f[0], f[0])
        self.heads = nn.ModuleList([nn.Conv2d(f[0], num_classes, 1) for _ in range(4 if deep_supervision else 1)])

    def forward(self, x):
        x0_0 = self.conv0_0(x)
        x1_0 = self.conv1_0(self.pool(x0_0))
        x0_1 = self.conv0_1(torch.cat([x0_0, self.up(x1_0)], 1))
        x2_0 = self.conv2_0(self.pool(x1_0))
        x1_1 = self.conv1_1(torch.cat([x1_0, self.up(x2_0)], 1))
        x0_2 = self.conv0_2(torch.cat([x0_0, x0_1, self.up(x1_1)], 1))
        x3_0 = self.conv3_0(self.pool(x2_0))
        x2_1 = self.conv2_1(torch.cat([x2_0, self.up(x3_0)], 1))
        x1_2 = self.conv1_2(torch.cat([x1_0, x1_1, self.up(x2_1)], 1))
        x0_3 = self.conv0_3(torch.cat([x0_0, x0_1, x0_2, self.up(x1_2)], 1))
        x4_0 = self.conv4_0(self.pool(x3_0))
        x3_1 = self.conv3_1(torch.cat([x3_0, self.up(x4_0)], 1))
        x2_2 = self.conv2_2(torch.cat([x2_0, x2_1, self.up(x3_1)], 1))
        x1_3 = self.conv1_3(torch.cat([x1_0, x1_1, x1_2, self.up(x2_2)], 1))
        x0_4 = self.conv0_4(torch.cat([x0_0, x0_1, x0_2, x0_3, self.up(x1_3)], 1))
        if self.deep_supervision:
            return [h(t) for h, t in zip(self.heads, (x0_1, x0_2, x0_3, x0_4))]
        return [self.heads[0](x0_4)]


def bce_dice_loss(logits, target, eps=1e-5):
    bce = F.binary_cross_entropy_with_logits(logits, target)
    p = torch.sigmoid(logits).flatten(1)
    t = target.flatten(1)
    dice = (2 * (p * t).sum(1) + eps) / (p.sum(1) + t.sum(1) + eps)
    return 0.5 * bce + 1 - dice.mean()


class SegModule(L.LightningModule):
    def __init__(self, lr=3e-4):
        super().__init__()
        self.save_hyperparameters()
        self.net = NestedUNet()

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        outs = self(x)
        loss = sum(bce_dice_loss(o, y) for o in outs) / len(outs)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        outs = self(x)
        loss = sum(bce_dice_loss(o, y) for o in outs) / len(outs)
        pred = (torch.sigmoid(outs[-1]) > 0.5).float()
        iou = ((pred * y).sum() + 1e-5) / (((pred + y) > 0).float().sum() + 1e-5)
        self.log_dict({"val_loss": loss, "val_iou": iou}, prog_bar=True)

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr, weight_decay=1e-4)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "monitor": "val_loss"}}


def main():
    L.seed_everything(5)
    train_loader = DataLoader(Cells(N_TRAIN, 0), batch_size=BATCH, shuffle=True, num_workers=2)
    val_loader = DataLoader(Cells(N_VAL, 1), batch_size=BATCH, num_workers=2)
    with tempfile.TemporaryDirectory() as tmp:
        trainer = L.Trainer(
            max_epochs=EPOCHS, accelerator="gpu", devices=1, precision="16-mixed", log_every_n_steps=5,
            logger=CSVLogger(tmp),
            callbacks=[ModelCheckpoint(dirpath=tmp, monitor="val_iou", mode="max"), LearningRateMonitor()],
        )
        trainer.fit(SegModule(), train_loader, val_loader)
        print(trainer.callback_metrics)
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
