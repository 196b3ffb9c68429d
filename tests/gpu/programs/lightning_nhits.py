"""N-HiTS long horizon forecasting with PyTorch Lightning (electricity-like hourly data, windows sampled per batch)."""
import math
import tempfile

import lightning.pytorch as pl
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, Dataset

HORIZON, INPUT = 96, 5 * 96
N_SERIES, HOURS = 321, 3000
SERIES_BATCH, WINDOWS = 64, 16384


class SeriesDataset(Dataset):
    def __init__(self):
        rng = np.random.default_rng(0)
        t = np.arange(HOURS, dtype=np.float32)
        phase = rng.uniform(0, 6.28, (N_SERIES, 1)).astype(np.float32)
        self.y = np.sin(t * 2 * math.pi / 24 + phase) + 0.5 * np.sin(t * 2 * math.pi / 168 + phase)
        self.y = (self.y + 0.1 * rng.standard_normal((N_SERIES, HOURS), dtype=np.float32)).astype(np.float32)

    def __len__(self):
        return N_SERIES

    def __getitem__(self, i):
        return torch.from_numpy(self.y[i])


class NHITSBlock(nn.Module):
    def __init__(self, input_size, h, n_theta_knots, pool, units=1024, depth=2, dropout=0.1):
        super().__init__()
        self.h, self.input_size = h, input_size
        self.pool = nn.MaxPool1d(kernel_size=pool, stride=pool, ceil_mode=True)
        hidden = [int(np.ceil(input_size / pool))] + [units] * depth
        layers = []
        for a, b in zip(hidden[:-1], hidden[1:]):
            layers += [nn.Linear(a, b), nn.ReLU(), nn.Dropout(dropout)]
        self.layers = nn.Sequential(*layers, nn.Linear(units, input_size + n_theta_knots))

    def forward(self, y):
        x = self.pool(y.unsqueeze(1)).squeeze(1)
        theta = self.layers(x)
        backcast, knots = theta[:, :self.input_size], theta[:, self.input_size:]
        forecast = F.interpolate(knots[:, None, :], size=self.h, mode="linear")[:, 0]
        return backcast, forecast


class NHITS(pl.LightningModule):
    def __init__(self, n_pool=(8, 4, 1), n_freq=(24, 12, 1), blocks=(2, 2, 2), lr=1e-3, units=1024, windows_batch_size=WINDOWS):
        super().__init__()
        self.save_hyperparameters()
        self.blocks = nn.ModuleList()
        for p, f, n in zip(n_pool, n_freq, blocks):
            for _ in range(n):
                self.blocks.append(NHITSBlock(INPUT, HORIZON, max(HORIZON // f, 1), p, units))

    def forward(self, insample):
        residuals = insample.flip(-1)
        forecast = insample[:, -1:]
        for block in self.blocks:
            backcast, f = block(residuals)
            residuals = residuals - backcast
            forecast = forecast + f
        return forecast

    def windows(self, batch, step):
        w = batch.unfold(-1, INPUT + HORIZON, step)
        return w.reshape(-1, INPUT + HORIZON)

    def normalize(self, w):
        mean = w[:, :INPUT].mean(-1, keepdim=True)
        std = w[:, :INPUT].std(-1, keepdim=True) + 1e-6
        return (w - mean) / std, mean, std

    def training_step(self, batch, batch_idx):
        w = self.windows(batch[:, :-2 * HORIZON], 1)
        idx = torch.randint(0, len(w), (min(self.hparams.windows_batch_size, len(w)),), device=w.device)
        w, _, _ = self.normalize(w[idx])
        loss = F.l1_loss(self(w[:, :INPUT]), w[:, INPUT:])
        self.log("train_loss", loss, prog_bar=True, batch_size=len(w))
        return loss

    def validation_step(self, batch, batch_idx):
        w = self.windows(batch[:, -(2 * HORIZON + INPUT):], 8)
        w, mean, std = self.normalize(w)
        pred = self(w[:, :INPUT])
        self.log("ptl/val_loss", F.l1_loss(pred * std + mean, w[:, INPUT:] * std + mean), prog_bar=True, batch_size=len(w))

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        sched = torch.optim.lr_scheduler.StepLR(opt, step_size=5, gamma=0.5)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "epoch"}}


def main():
    pl.seed_everything(1)
    ds = SeriesDataset()
    train = DataLoader(ds, SERIES_BATCH, shuffle=True)
    val = DataLoader(ds, SERIES_BATCH)
    model = NHITS()
    out = tempfile.mkdtemp()
    trainer = pl.Trainer(max_epochs=6, accelerator="auto", devices=1, gradient_clip_val=1.0, check_val_every_n_epoch=2,
                         logger=CSVLogger(out), log_every_n_steps=5,
                         callbacks=[EarlyStopping("ptl/val_loss", patience=5), ModelCheckpoint(out, monitor="ptl/val_loss")])
    trainer.fit(model, train, val)
    trainer.validate(model, val, ckpt_path="best", weights_only=False)


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
