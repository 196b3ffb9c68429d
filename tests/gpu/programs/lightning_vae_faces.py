import argparse

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Faces(Dataset):
    def __init__(self, n, size, offset=0):
        self.n, self.size, self.offset = n, size, offset

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.offset + i)
        low = torch.rand(1, 3, 8, 8, generator=g)
        return F.interpolate(low, size=self.size, mode="bilinear")[0]


class FaceData(L.LightningDataModule):
    def __init__(self, batch_size, size, n):
        super().__init__()
        self.batch_size, self.size, self.n = batch_size, size, n

    def setup(self, stage):
        self.train_set = Faces(self.n, self.size)
        self.val_set = Faces(max(self.n // 10, 4), self.size, 10 ** 6)

    def train_dataloader(self):
        return DataLoader(self.train_set, self.batch_size, shuffle=True, num_workers=8, persistent_workers=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, self.batch_size, num_workers=4, persistent_workers=True)


class ResBlock(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.net = nn.Sequential(nn.GroupNorm(8, ch), nn.SiLU(), nn.Conv2d(ch, ch, 3, padding=1),
                                 nn.GroupNorm(8, ch), nn.SiLU(), nn.Conv2d(ch, ch, 3, padding=1))

    def forward(self, x):
        return x + self.net(x)


class ConvVAE(L.LightningModule):
    def __init__(self, size=128, base=64, latent=256, lr=2e-4, beta=0.5):
        super().__init__()
        self.save_hyperparameters()
        chs = [base, base * 2, base * 4, base * 8]
        enc = [nn.Conv2d(3, base, 3, padding=1)]
        prev = base
        for c in chs:
            enc += [ResBlock(prev), nn.Conv2d(prev, c, 4, stride=2, padding=1)]
            prev = c
        self.encoder = nn.Sequential(*enc, ResBlock(prev))
        self.side = size // 16
        flat = prev * self.side ** 2
        self.to_stats = nn.Linear(flat, 2 * latent)
        self.from_latent = nn.Linear(latent, flat)
        dec = [ResBlock(prev)]
        for c in reversed([base] + chs[:-1]):
            dec += [nn.ConvTranspose2d(prev, c, 4, stride=2, padding=1), ResBlock(c)]
            prev = c
        self.decoder = nn.Sequential(*dec, nn.GroupNorm(8, prev), nn.SiLU(), nn.Conv2d(prev, 3, 3, padding=1))

    def forward(self, x):
        mu, logvar = self.to_stats(self.encoder(x).flatten(1)).chunk(2, dim=1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.decode(z), mu, logvar

    def decode(self, z):
        h = self.from_latent(z).view(z.size(0), -1, self.side, self.side)
        return torch.sigmoid(self.decoder(h))

    def elbo(self, x):
        recon, mu, logvar = self(x)
        rec = F.mse_loss(recon, x, reduction="none").sum(dim=(1, 2, 3)).mean()
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
        return rec + self.hparams.beta * kl, rec, kl

    def training_step(self, batch, batch_idx):
        loss, rec, kl = self.elbo(batch)
        self.log_dict({"train/rec": rec, "train/kl": kl}, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        loss, rec, kl = self.elbo(batch)
        self.log("val/loss", loss, prog_bar=True)

    def on_validation_epoch_end(self):
        z = torch.randn(64, self.hparams.latent, device=self.device)
        samples = self.decode(z)
        self.log("val/sample_mean", samples.mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--base", type=int, default=64)
    parser.add_argument("--images", type=int, default=4000)
    parser.add_argument("--max-epochs", type=int, default=2)
    args = parser.parse_args()

    L.seed_everything(7)
    trainer = L.Trainer(accelerator="auto", devices=1, max_epochs=args.max_epochs, logger=False,
                        enable_checkpointing=False, gradient_clip_val=1.0, log_every_n_steps=10)
    trainer.fit(ConvVAE(args.size, args.base), FaceData(args.batch_size, args.size, args.images))
    print(trainer.callback_metrics)
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
