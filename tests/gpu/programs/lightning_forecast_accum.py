# SPDX-License-Identifier: Apache-2.0
"""Time series forecasting (LSTM encoder, attention, quantile loss); Lightning with accumulate_grad_batches."""
import argparse
import os

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SMALL = os.environ.get("SMALL") == "1"
QUANTILES = (0.1, 0.5, 0.9)


class GatedResidual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one, self.two, self.gate, self.norm = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, 2 * width), nn.LayerNorm(width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        h = self.drop(self.two(nn.functional.elu(self.one(x))))
        return self.norm(x + nn.functional.glu(self.gate(h), dim=-1))


class Forecaster(L.LightningModule):
    def __init__(self, features, horizon, width=384):
        super().__init__()
        self.horizon = horizon
        self.series = nn.Embedding(5000, width)
        self.first = nn.Linear(features, width)
        self.grn = GatedResidual(width)
        self.lstm = nn.LSTM(width, width, 2, batch_first=True, dropout=0.1)
        self.attention = nn.MultiheadAttention(width, 8, batch_first=True)
        self.after = nn.Sequential(GatedResidual(width), GatedResidual(width))
        self.out = nn.Linear(width, len(QUANTILES))

    def forward(self, x, who):
        h = self.grn(self.first(x) + self.series(who)[:, None])
        h, _ = self.lstm(h)
        n = h.shape[1]
        causal = torch.triu(torch.ones(n, n, dtype=torch.bool, device=h.device), 1)
        a, _ = self.attention(h, h, h, attn_mask=causal)
        return self.out(self.after(h + a)[:, -self.horizon:])

    def loss(self, batch):
        x, who, y = batch
        out = self(x, who)
        error = y[..., None] - out
        q = torch.tensor(QUANTILES, device=out.device)
        return torch.maximum(q * error, (q - 1) * error).mean()

    def training_step(self, batch, index):
        loss = self.loss(batch)
        self.log("loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, index):
        self.log("valid", self.loss(batch))

    def configure_optimizers(self):
        opt = torch.optim.RAdam(self.parameters(), lr=1e-3)
        return [opt], [torch.optim.lr_scheduler.StepLR(opt, 1, 0.9)]


def make(n, steps, features, horizon):
    return TensorDataset(torch.randn(n, steps, features), torch.randint(0, 5000, (n,)), torch.randn(n, horizon))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=128)
    args = ap.parse_args()
    torch.manual_seed(0)
    steps, horizon = (24, 6) if SMALL else (288, 48)
    train = DataLoader(make(args.batch_size * 10, steps, 24, horizon), args.batch_size, shuffle=True, drop_last=True)
    valid = DataLoader(make(args.batch_size * 2, steps, 24, horizon), args.batch_size)
    trainer = L.Trainer(max_epochs=1, accumulate_grad_batches=2, gradient_clip_val=0.5, devices=1, logger=False, enable_checkpointing=False, enable_model_summary=False)
    trainer.fit(Forecaster(24, horizon), train, valid)
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
