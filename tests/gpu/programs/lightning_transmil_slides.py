"""TransMIL: whole-slide classification from bags of patch features, Nystrom attention + PPEG. Lightning fp16, accumulation."""
import argparse
import math
import tempfile

import pytorch_lightning as pl
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchmetrics
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from torch.utils.data import DataLoader, Dataset


def moore_penrose_iter_pinv(x, iters=6):
    abs_x = torch.abs(x)
    z = x.transpose(-1, -2) / (torch.max(abs_x.sum(-1)) * torch.max(abs_x.sum(-2)))
    I = torch.eye(x.shape[-1], device=x.device)[None]
    for _ in range(iters):
        xz = x @ z
        z = 0.25 * z @ (13 * I - (xz @ (15 * I - (xz @ (7 * I - xz)))))
    return z


class NystromAttention(nn.Module):
    def __init__(self, dim, dim_head=64, heads=8, num_landmarks=256, pinv_iterations=6, dropout=0.1, kernel=33):
        super().__init__()
        inner = heads * dim_head
        self.heads, self.m, self.iters, self.scale = heads, num_landmarks, pinv_iterations, dim_head ** -0.5
        self.to_qkv = nn.Linear(dim, inner * 3, bias=False)
        self.to_out = nn.Sequential(nn.Linear(inner, dim), nn.Dropout(dropout))
        self.res_conv = nn.Conv2d(heads, heads, (kernel, 1), padding=(kernel // 2, 0), groups=heads, bias=False)

    def forward(self, x):
        b, n, _ = x.shape
        m = self.m
        if n % m:
            x = F.pad(x, (0, 0, m - n % m, 0), value=0)
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        q, k, v = (t.view(b, x.shape[1], self.heads, -1).transpose(1, 2) for t in (q, k, v))
        q = q * self.scale
        l = math.ceil(n / m)
        q_l = q.reshape(b, self.heads, m, l, -1).sum(3) / l
        k_l = k.reshape(b, self.heads, m, l, -1).sum(3) / l
        attn1, attn2, attn3 = (t.softmax(dim=-1) for t in (q @ k_l.transpose(-1, -2), q_l @ k_l.transpose(-1, -2), q_l @ k.transpose(-1, -2)))
        with torch.autocast(x.device.type, enabled=False):
            inv = moore_penrose_iter_pinv(attn2.float(), self.iters)
        out = (attn1 @ inv.to(attn1.dtype)) @ (attn3 @ v.to(attn3.dtype))
        out = out + self.res_conv(v)
        out = out.transpose(1, 2).reshape(b, x.shape[1], -1)
        return self.to_out(out)[:, -n:]


class TransLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.attn = nn.LayerNorm(dim), NystromAttention(dim, dim // 8, 8, dim // 2)

    def forward(self, x):
        return x + self.attn(self.norm(x))


class PPEG(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.proj, self.proj1, self.proj2 = (nn.Conv2d(dim, dim, k, 1, k // 2, groups=dim) for k in (7, 5, 3))

    def forward(self, x, H, W):
        b, _, c = x.shape
        cls, feat = x[:, :1], x[:, 1:]
        f = feat.transpose(1, 2).view(b, c, H, W)
        f = self.proj(f) + f + self.proj1(f) + self.proj2(f)
        return torch.cat((cls, f.flatten(2).transpose(1, 2)), dim=1)


class TransMIL(pl.LightningModule):
    def __init__(self, n_classes=2, in_dim=1024, dim=512, lr=2e-4):
        super().__init__()
        self.save_hyperparameters()
        self.fc1 = nn.Sequential(nn.Linear(in_dim, dim), nn.ReLU())
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim) * 1e-3)
        self.layer1, self.pos, self.layer2 = TransLayer(dim), PPEG(dim), TransLayer(dim)
        self.norm, self.fc2 = nn.LayerNorm(dim), nn.Linear(dim, n_classes)
        self.auroc = torchmetrics.AUROC(task="binary")
        self.acc = torchmetrics.Accuracy(task="binary")

    def forward(self, h):
        h = self.fc1(h.float())
        n = h.shape[1]
        s = int(math.ceil(math.sqrt(n)))
        h = torch.cat([h, h[:, :s * s - n]], dim=1)
        h = torch.cat((self.cls_token.expand(h.shape[0], -1, -1), h), dim=1)
        h = self.layer2(self.pos(self.layer1(h), s, s))
        return self.fc2(self.norm(h)[:, 0])

    def training_step(self, batch, _):
        bag, y = batch
        loss = F.cross_entropy(self(bag), y)
        self.log("train_loss", loss, prog_bar=True, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        bag, y = batch
        logits = self(bag)
        prob = logits.softmax(-1)[:, 1]
        self.auroc.update(prob, y)
        self.acc.update(prob, y)
        self.log("val_loss", F.cross_entropy(logits, y), prog_bar=True, on_epoch=True)

    def on_validation_epoch_end(self):
        self.log_dict({"val_auc": self.auroc.compute(), "val_acc": self.acc.compute()}, prog_bar=True)
        self.auroc.reset()
        self.acc.reset()

    def configure_optimizers(self):
        return torch.optim.RAdam(self.parameters(), lr=self.hparams.lr, weight_decay=1e-5)


class Slides(Dataset):
    def __init__(self, n, lo, hi, dim, seed):
        g = torch.Generator().manual_seed(seed)
        self.pool = torch.randn(hi + 512, dim, generator=torch.Generator().manual_seed(99)).half()
        self.sizes = torch.randint(lo, hi, (n,), generator=g)
        self.y = torch.arange(n) % 2

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        start = int(torch.randint(0, 512, ()))
        return self.pool[start:start + int(self.sizes[i])], self.y[i]


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--min_patches", type=int, default=8000)
    ap.add_argument("--max_patches", type=int, default=24000)
    ap.add_argument("--dim", type=int, default=512)
    ap.add_argument("--slides", type=int, default=96)
    ap.add_argument("--epochs", type=int, default=3)
    a = ap.parse_args()
    pl.seed_everything(2021)
    train = DataLoader(Slides(a.slides, a.min_patches, a.max_patches, 1024, 0), batch_size=1, shuffle=True, num_workers=1)
    val = DataLoader(Slides(max(a.slides // 6, 4), a.min_patches, a.max_patches, 1024, 1), batch_size=1, num_workers=1)
    tmp = tempfile.mkdtemp()
    trainer = pl.Trainer(max_epochs=a.epochs, accelerator="auto", devices=1, precision="16-mixed", accumulate_grad_batches=4, logger=False,
                         default_root_dir=tmp, callbacks=[EarlyStopping("val_loss", patience=10), ModelCheckpoint(tmp, monitor="val_loss", save_last=True)])
    trainer.fit(TransMIL(dim=a.dim), train, val)
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
