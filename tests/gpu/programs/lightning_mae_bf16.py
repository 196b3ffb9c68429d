# SPDX-License-Identifier: Apache-2.0
"""Masked autoencoder, written out, Lightning with precision bf16-mixed."""
import argparse
import os

import lightning.pytorch as pl
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

SMALL = os.environ.get("SMALL") == "1"


def blocks(dim, heads, depth):
    layer = nn.TransformerEncoderLayer(dim, heads, dim * 4, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)


class MAE(pl.LightningModule):
    def __init__(self, size=224, patch=14, dim=640, depth=12, decoder_dim=384, decoder_depth=4, keep=0.4):
        super().__init__()
        self.patch, self.n = patch, (size // patch) ** 2
        self.keep = int(self.n * keep)
        self.embed = nn.Conv2d(3, dim, patch, patch)
        self.pos = nn.Parameter(torch.randn(1, self.n, dim) * 0.02)
        self.encoder = blocks(dim, 10, depth)
        self.narrow = nn.Linear(dim, decoder_dim)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, decoder_dim))
        self.decoder_pos = nn.Parameter(torch.randn(1, self.n, decoder_dim) * 0.02)
        self.decoder = blocks(decoder_dim, 6, decoder_depth)
        self.head = nn.Linear(decoder_dim, patch * patch * 3)

    def patches(self, x):
        b, c, h, w = x.shape
        p = self.patch
        return x.reshape(b, c, h // p, p, w // p, p).permute(0, 2, 4, 3, 5, 1).reshape(b, -1, p * p * c)

    def training_step(self, batch, index):
        (x,) = batch
        b = x.shape[0]
        tokens = self.embed(x).flatten(2).transpose(1, 2) + self.pos
        order = torch.rand(b, self.n, device=x.device).argsort(1)
        back = order.argsort(1)
        kept = order[:, :self.keep, None]
        z = self.encoder(torch.gather(tokens, 1, kept.expand(-1, -1, tokens.shape[-1])))
        z = self.narrow(z)
        full = torch.cat([z, self.mask_token.to(z.dtype).expand(b, self.n - self.keep, -1)], 1)
        full = torch.gather(full, 1, back[:, :, None].expand(-1, -1, full.shape[-1])) + self.decoder_pos
        pred = self.head(self.decoder(full))
        target = self.patches(x)
        target = (target - target.mean(-1, keepdim=True)) / (target.var(-1, keepdim=True) + 1e-6).sqrt()
        mask = torch.ones(b, self.n, device=x.device)
        mask[:, :self.keep] = 0
        mask = torch.gather(mask, 1, back)
        loss = (((pred - target) ** 2).mean(-1) * mask).sum() / mask.sum()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1.5e-4, betas=(0.9, 0.95), weight_decay=0.05)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=96)
    args = parser.parse_args()
    torch.manual_seed(0)
    size = 56 if SMALL else 224
    loader = DataLoader(TensorDataset(torch.randn(args.batch_size * 5, 3, size, size)), batch_size=args.batch_size, shuffle=True)
    model = MAE(size=size, dim=160 if SMALL else 640, depth=2 if SMALL else 12)
    precision = "bf16-mixed" if torch.cuda.is_available() else "32-true"
    pl.Trainer(max_steps=5, precision=precision, devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False, gradient_clip_val=1.0).fit(model, loader)
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
