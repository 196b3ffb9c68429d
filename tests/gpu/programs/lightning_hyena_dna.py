"""Hyena operator for DNA sequences, next-nucleotide pretraining at 8k context. Lightning."""
import argparse
import math
import tempfile

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, Dataset


def fftconv(u, k, D):
    seqlen = u.shape[-1]
    fft_size = 2 * seqlen
    k_f = torch.fft.rfft(k, n=fft_size) / fft_size
    u_f = torch.fft.rfft(u.to(dtype=k.dtype), n=fft_size)
    y = torch.fft.irfft(u_f * k_f, n=fft_size, norm="forward")[..., :seqlen]
    out = y + u * D.unsqueeze(-1)
    return out.to(dtype=u.dtype)


class Sin(nn.Module):
    def __init__(self, dim, w=10):
        super().__init__()
        self.freq = nn.Parameter(w * torch.ones(1, dim))

    def forward(self, x):
        return torch.sin(self.freq * x)


class PositionalEmbedding(nn.Module):
    def __init__(self, emb_dim, seq_len):
        super().__init__()
        t = torch.linspace(0, 1, seq_len)[None, :, None]
        bands = (emb_dim - 1) // 2
        w = 2 * math.pi * torch.arange(seq_len)[None, :, None] / seq_len
        f = torch.linspace(1e-4, bands - 1, bands)[None, None]
        z = torch.exp(-1j * f * w)
        self.register_buffer("z", torch.cat([t, z.real, z.imag], dim=-1))
        self.register_buffer("t", t)

    def forward(self, n):
        return self.z[:, :n], self.t[:, :n]


class HyenaFilter(nn.Module):
    def __init__(self, d_model, order=64, emb_dim=5, seq_len=8192):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(d_model))
        self.pos_emb = PositionalEmbedding(emb_dim, seq_len)
        self.net = nn.Sequential(nn.Linear(emb_dim, order), Sin(order), nn.Linear(order, order), Sin(order),
                                 nn.Linear(order, order), Sin(order), nn.Linear(order, d_model, bias=False))
        deltas = torch.linspace(math.log(1e-2) / 1.5, math.log(1e-2) / 0.3, d_model)[None, None]
        self.register_buffer("deltas", deltas)

    def forward(self, n):
        z, t = self.pos_emb(n)
        h = self.net(z).float()
        h = h * torch.exp(-t * self.deltas.abs())
        return h.transpose(1, 2)


class HyenaOperator(nn.Module):
    def __init__(self, d_model, l_max, order=2, dropout=0.0):
        super().__init__()
        self.order, self.d_model = order, d_model
        width = d_model * (order + 1)
        self.in_proj = nn.Linear(d_model, width)
        self.out_proj = nn.Linear(d_model, d_model)
        self.short_filter = nn.Conv1d(width, width, 3, groups=width, padding=2)
        self.filter_fn = HyenaFilter(d_model * (order - 1), seq_len=l_max)
        self.dropout = nn.Dropout(dropout)

    def forward(self, u):
        n = u.size(1)
        u = self.in_proj(u).transpose(1, 2)
        uc = self.short_filter(u)[..., :n]
        *x, v = uc.split(self.d_model, dim=1)
        k = self.filter_fn(n)[0].view(self.order - 1, self.d_model, n)
        bias = self.filter_fn.bias.view(self.order - 1, self.d_model)
        for o, x_i in enumerate(reversed(x[1:])):
            v = self.dropout(v * x_i)
            v = fftconv(v, k[o], bias[o])
        y = (v * x[0]).transpose(1, 2)
        return self.out_proj(y)


class Block(nn.Module):
    def __init__(self, d_model, l_max):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.mixer = HyenaOperator(d_model, l_max)
        self.mlp = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(approximate="tanh"), nn.Linear(4 * d_model, d_model))

    def forward(self, x):
        x = x + self.mixer(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class HyenaDNA(L.LightningModule):
    def __init__(self, d_model=256, n_layer=6, l_max=8192, vocab=12, lr=6e-4, total_steps=100):
        super().__init__()
        self.save_hyperparameters()
        self.embed = nn.Embedding(vocab, d_model)
        self.blocks = nn.ModuleList([Block(d_model, l_max) for _ in range(n_layer)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab, bias=False)

    def forward(self, x):
        x = self.embed(x)
        for b in self.blocks:
            x = b(x)
        return self.head(self.norm(x))

    def _loss(self, batch):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=4)
        acc = (logits.argmax(-1) == y).float().mean()
        return loss, acc

    def training_step(self, batch, idx):
        loss, acc = self._loss(batch)
        self.log("train/loss", loss, prog_bar=True)
        self.log("train/acc", acc)
        return loss

    def validation_step(self, batch, idx):
        loss, acc = self._loss(batch)
        self.log_dict({"val/loss": loss, "val/acc": acc}, on_epoch=True, prog_bar=True)

    def configure_optimizers(self):
        decay = [p for n, p in self.named_parameters() if p.ndim >= 2 and "filter_fn" not in n]
        no_decay = [p for n, p in self.named_parameters() if not (p.ndim >= 2 and "filter_fn" not in n)]
        opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}], lr=self.hparams.lr)
        sched = torch.optim.lr_scheduler.OneCycleLR(opt, self.hparams.lr, total_steps=self.hparams.total_steps, pct_start=0.1)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "step"}}


class Genome(Dataset):
    def __init__(self, n, length, seed):
        g = torch.Generator().manual_seed(seed)
        self.seq = torch.randint(0, 5, (length * 40 + 1,), generator=g)
        self.starts = torch.randint(0, len(self.seq) - length - 1, (n,), generator=g)
        self.length = length

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, i):
        s = self.starts[i]
        x = self.seq[s:s + self.length + 1]
        return x[:-1], x[1:]


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--length", type=int, default=8192)
    p.add_argument("--d_model", type=int, default=256)
    p.add_argument("--batch_size", type=int, default=8)
    p.add_argument("--train_size", type=int, default=240)
    p.add_argument("--epochs", type=int, default=2)
    args = p.parse_args()
    L.seed_everything(2222)
    tmp = tempfile.mkdtemp()
    train = DataLoader(Genome(args.train_size, args.length, 0), batch_size=args.batch_size, shuffle=True, num_workers=1)
    val = DataLoader(Genome(max(args.train_size // 8, 2), args.length, 1), batch_size=args.batch_size, num_workers=1)
    model = HyenaDNA(d_model=args.d_model, l_max=args.length, total_steps=args.epochs * len(train))
    trainer = L.Trainer(max_epochs=args.epochs, accelerator="auto", devices=1, precision="bf16-mixed", gradient_clip_val=1.0,
                        log_every_n_steps=10, default_root_dir=tmp, logger=CSVLogger(tmp),
                        callbacks=[ModelCheckpoint(dirpath=tmp, monitor="val/loss"), LearningRateMonitor()])
    trainer.fit(model, train, val)
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
