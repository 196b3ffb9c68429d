# SPDX-License-Identifier: Apache-2.0
# keyword spotting: spectrogram on the device, conformer encoder, Lightning with 16-mixed, early stopping, plateau scheduler
import os
import tempfile
from argparse import ArgumentParser

import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split
from torchmetrics.classification import MulticlassAccuracy, MulticlassConfusionMatrix

SMALL = os.environ.get("SMALL") == "1"
SAMPLES = 4000 if SMALL else 16000


class LogSpec(nn.Module):
    def __init__(self, n_fft=400, hop=100, bands=80):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))
        self.register_buffer("fb", torch.rand(n_fft // 2 + 1, bands) / n_fft)

    @torch.no_grad()
    def forward(self, wav):
        with torch.autocast(wav.device.type, enabled=False):
            spec = torch.stft(wav.float(), self.n_fft, self.hop, window=self.window, return_complex=True).abs().pow(2)
            return torch.log(spec.transpose(1, 2) @ self.fb + 1e-6)


class FeedForward(nn.Sequential):
    def __init__(self, d, p):
        super().__init__(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.SiLU(), nn.Dropout(p), nn.Linear(4 * d, d), nn.Dropout(p))


class ConvModule(nn.Module):
    def __init__(self, d, k, p):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.net = nn.Sequential(nn.Conv1d(d, 2 * d, 1), nn.GLU(1), nn.Conv1d(d, d, k, padding=k // 2, groups=d), nn.BatchNorm1d(d), nn.SiLU(), nn.Conv1d(d, d, 1), nn.Dropout(p))

    def forward(self, x):
        return self.net(self.norm(x).transpose(1, 2)).transpose(1, 2)


class ConformerBlock(nn.Module):
    def __init__(self, d, heads, p=0.1):
        super().__init__()
        self.ff1, self.ff2 = FeedForward(d, p), FeedForward(d, p)
        self.conv = ConvModule(d, 15, p)
        self.norm_a, self.norm_o = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = nn.MultiheadAttention(d, heads, dropout=p, batch_first=True)

    def forward(self, x):
        x = x + 0.5 * self.ff1(x)
        z = self.norm_a(x)
        x = x + self.attn(z, z, z)[0]
        x = x + self.conv(x)
        return self.norm_o(x + 0.5 * self.ff2(x))


class KeywordModel(pl.LightningModule):
    def __init__(self, d=256, layers=8, heads=4, classes=35):
        super().__init__()
        self.spec = LogSpec()
        self.inp = nn.Linear(80, d)
        self.blocks = nn.Sequential(*[ConformerBlock(d, heads) for _ in range(layers)])
        self.out = nn.Linear(d, classes)
        self.acc = MulticlassAccuracy(classes)
        self.cm = MulticlassConfusionMatrix(classes)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, wav):
        return self.out(self.blocks(self.inp(self.spec(wav))).mean(1))

    def training_step(self, batch, _):
        wav, y = batch
        shift = int(torch.randint(-400, 400, (1,)))
        loss = self.loss(self(torch.roll(wav, shift, -1)), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, _):
        wav, y = batch
        out = self(wav)
        self.acc.update(out, y)
        self.cm.update(out, y)
        self.log("val_loss", self.loss(out, y), prog_bar=True)
        self.log("val_acc", self.acc, on_epoch=True)

    def on_validation_epoch_end(self):
        worst = self.cm.compute().diag().argmin().item()
        self.print("hardest keyword", worst)
        self.cm.reset()

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=5e-4)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=0), "monitor": "val_loss"}}


def cli():
    p = ArgumentParser()
    p.add_argument("--batch-size", type=int, default=96)
    args = p.parse_args()
    pl.seed_everything(0, workers=True)
    if SMALL:
        args.batch_size = 8
    n = args.batch_size * 10
    data = TensorDataset(torch.randn(n, SAMPLES), torch.randint(0, 35, (n,)))
    train, val = random_split(data, [0.6, 0.4])
    model = KeywordModel(32, 2, 2) if SMALL else KeywordModel()
    trainer = pl.Trainer(
        max_epochs=3, devices=1, precision="16-mixed" if torch.cuda.is_available() else 32, gradient_clip_val=1.0, limit_val_batches=3, num_sanity_val_steps=1,
        callbacks=[pl.callbacks.EarlyStopping("val_loss", patience=1)], logger=False, enable_checkpointing=False, default_root_dir=tempfile.gettempdir(), enable_progress_bar=False,
    )
    trainer.fit(model, DataLoader(train, args.batch_size, shuffle=True), DataLoader(val, args.batch_size))
    print(trainer.callback_metrics)


if __name__ == "__main__":
    cli()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
