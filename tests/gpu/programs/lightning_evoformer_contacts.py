"""Evoformer-like trunk (row/column MSA attention, outer product mean, triangle updates) for distogram prediction."""
import argparse
import tempfile

import pytorch_lightning as pl
import torch
import torch.nn as nn
import torch.nn.functional as F
from pytorch_lightning.callbacks import ModelCheckpoint
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset


class GatedAttention(nn.Module):
    def __init__(self, dim, heads, dim_head, pair_dim=None):
        super().__init__()
        self.h = heads
        inner = heads * dim_head
        self.norm = nn.LayerNorm(dim)
        self.qkv, self.gate, self.out = nn.Linear(dim, 3 * inner, bias=False), nn.Linear(dim, inner), nn.Linear(inner, dim)
        self.bias = nn.Sequential(nn.LayerNorm(pair_dim), nn.Linear(pair_dim, heads, bias=False)) if pair_dim else None

    def forward(self, x, pair=None):
        """attention over dim -2 of x (b, r, n, d)"""
        x = self.norm(x)
        q, k, v = (t.unflatten(-1, (self.h, -1)).transpose(-2, -3) for t in self.qkv(x).chunk(3, -1))
        logits = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        if self.bias is not None:
            logits = logits + self.bias(pair).permute(0, 3, 1, 2).unsqueeze(1)
        o = (logits.softmax(-1) @ v).transpose(-2, -3).flatten(-2)
        return self.out(o * self.gate(x).sigmoid())


class Transition(nn.Sequential):
    def __init__(self, d, mult=4):
        super().__init__(nn.LayerNorm(d), nn.Linear(d, d * mult), nn.ReLU(), nn.Linear(d * mult, d))


class OuterProductMean(nn.Module):
    def __init__(self, msa, pair, hidden=32):
        super().__init__()
        self.norm, self.ab, self.out = nn.LayerNorm(msa), nn.Linear(msa, 2 * hidden), nn.Linear(hidden * hidden, pair)

    def forward(self, m):
        a, b = self.ab(self.norm(m)).chunk(2, -1)
        o = torch.einsum("bsic,bsjd->bijcd", a, b) / m.shape[1]
        return self.out(o.flatten(-2))


class TriangleMultiplication(nn.Module):
    def __init__(self, d, hidden, mode):
        super().__init__()
        self.mode = mode
        self.norm, self.norm_out = nn.LayerNorm(d), nn.LayerNorm(hidden)
        self.ab, self.ab_gate = nn.Linear(d, 2 * hidden), nn.Linear(d, 2 * hidden)
        self.gate, self.out = nn.Linear(d, d), nn.Linear(hidden, d)

    def forward(self, z):
        z = self.norm(z)
        a, b = (self.ab(z) * self.ab_gate(z).sigmoid()).chunk(2, -1)
        eq = "bikc,bjkc->bijc" if self.mode == "outgoing" else "bkic,bkjc->bijc"
        return self.out(self.norm_out(torch.einsum(eq, a, b))) * self.gate(z).sigmoid()


class TriangleAttention(nn.Module):
    def __init__(self, d, heads, dim_head, mode):
        super().__init__()
        self.mode, self.attn = mode, GatedAttention(d, heads, dim_head, pair_dim=d)

    def forward(self, z):
        if self.mode == "ending":
            z = z.transpose(1, 2)
        o = self.attn(z, z)
        return o.transpose(1, 2) if self.mode == "ending" else o


class EvoformerBlock(nn.Module):
    def __init__(self, cm, cz):
        super().__init__()
        self.row, self.col = GatedAttention(cm, 8, 32, pair_dim=cz), GatedAttention(cm, 8, 32)
        self.msa_trans, self.opm = Transition(cm), OuterProductMean(cm, cz)
        self.tri_out, self.tri_in = TriangleMultiplication(cz, cz, "outgoing"), TriangleMultiplication(cz, cz, "incoming")
        self.att_start, self.att_end = TriangleAttention(cz, 4, 32, "starting"), TriangleAttention(cz, 4, 32, "ending")
        self.pair_trans = Transition(cz, 2)
        self.p_msa, self.p_pair = 0.15, 0.25

    def dropout_rows(self, x, p):
        mask = F.dropout(torch.ones_like(x[:, :1]), p, self.training)
        return x * mask

    def forward(self, m, z):
        m = m + self.dropout_rows(self.row(m, z), self.p_msa)
        m = m + self.col(m.transpose(1, 2)).transpose(1, 2)
        m = m + self.msa_trans(m)
        z = z + self.opm(m)
        z = z + self.dropout_rows(self.tri_out(z), self.p_pair)
        z = z + self.dropout_rows(self.tri_in(z), self.p_pair)
        z = z + self.dropout_rows(self.att_start(z), self.p_pair)
        z = z + self.dropout_rows(self.att_end(z), self.p_pair)
        return m, z + self.pair_trans(z)


class ContactNet(pl.LightningModule):
    def __init__(self, cm=128, cz=96, blocks=6, bins=64, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.msa_emb, self.left, self.right, self.relpos = nn.Embedding(23, cm), nn.Embedding(23, cz), nn.Embedding(23, cz), nn.Embedding(65, cz)
        self.blocks = nn.ModuleList([EvoformerBlock(cm, cz) for _ in range(blocks)])
        self.head = nn.Linear(cz, bins)
        self.msa_head = nn.Linear(cm, 23)

    def forward(self, msa, index, n_recycle=0):
        m0 = self.msa_emb(msa)
        target = msa[:, 0]
        rel = (index[:, :, None] - index[:, None]).clamp(-32, 32) + 32
        z0 = self.left(target)[:, :, None] + self.right(target)[:, None] + self.relpos(rel)
        z_prev = torch.zeros_like(z0)
        for r in range(n_recycle + 1):
            last = r == n_recycle
            with torch.set_grad_enabled(last and self.training):
                m, z = m0, z0 + z_prev
                for block in self.blocks:
                    if self.training and last:
                        m, z = checkpoint(block, m, z, use_reentrant=False)
                    else:
                        m, z = block(m, z)
                z_prev = z
        return self.msa_head(m), self.head(z + z.transpose(1, 2))

    def losses(self, batch, n_recycle):
        msa, true_msa, mask, index, dist = batch
        msa_logits, disto = self(msa, index, n_recycle)
        d_loss = F.cross_entropy(disto.flatten(0, 2).float(), dist.flatten())
        m_loss = F.cross_entropy(msa_logits[mask].float(), true_msa[mask])
        return d_loss, m_loss, disto

    def training_step(self, batch, _):
        n = int(torch.randint(0, 3, ()))
        d, m, _ = self.losses(batch, n)
        self.log_dict({"disto": d, "masked_msa": m}, prog_bar=True)
        return d + 2.0 * m

    def validation_step(self, batch, _):
        d, m, disto = self.losses(batch, 2)
        probs = disto.float().softmax(-1)[..., :20].sum(-1)
        n = probs.shape[1]
        iu = torch.triu_indices(n, n, 6, device=probs.device)
        top = probs[:, iu[0], iu[1]].topk(n, dim=-1).indices
        prec = torch.gather((batch[-1][:, iu[0], iu[1]] < 20).float(), 1, top).mean()
        self.log_dict({"val_disto": d, "val_msa": m, "val_precL": prec}, prog_bar=True)

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.hparams.lr, betas=(0.9, 0.999), eps=1e-6)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": torch.optim.lr_scheduler.LinearLR(opt, 0.05, total_iters=20), "interval": "step"}}


class Proteins(Dataset):
    def __init__(self, n, depth, length, seed):
        self.n, self.depth, self.length, self.seed = n, depth, length, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100000 + i)
        base = torch.randint(0, 20, (1, self.length), generator=g)
        mutate = torch.rand(self.depth, self.length, generator=g) < 0.3
        true = torch.where(mutate, torch.randint(0, 22, (self.depth, self.length), generator=g), base)
        mask = torch.rand(true.shape, generator=g) < 0.15
        xyz = torch.cumsum(F.normalize(torch.randn(self.length, 3, generator=g), dim=-1) * 3.8, 0)
        dist = torch.bucketize(torch.cdist(xyz, xyz), torch.linspace(2.3, 22, 63))
        start = int(torch.randint(0, 200, (1,), generator=g))
        return true.masked_fill(mask, 22), true, mask, torch.arange(self.length) + start, dist


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--crop", type=int, default=192)
    ap.add_argument("--depth", type=int, default=96)
    ap.add_argument("--cm", type=int, default=128)
    ap.add_argument("--cz", type=int, default=96)
    ap.add_argument("--blocks", type=int, default=6)
    ap.add_argument("--n", type=int, default=48)
    ap.add_argument("--batch", type=int, default=1)
    a = ap.parse_args()
    pl.seed_everything(77)
    train = DataLoader(Proteins(a.n, a.depth, a.crop, 0), batch_size=a.batch, shuffle=True, num_workers=1)
    val = DataLoader(Proteins(max(2, a.n // 8), a.depth, a.crop, 1), batch_size=a.batch)
    tmp = tempfile.mkdtemp()
    trainer = pl.Trainer(max_epochs=1, accelerator="auto", devices=1, precision="bf16-mixed", gradient_clip_val=0.1, accumulate_grad_batches=2,
                         val_check_interval=0.5, default_root_dir=tmp, logger=False, callbacks=[ModelCheckpoint(tmp, monitor="val_disto")])
    trainer.fit(ContactNet(a.cm, a.cz, a.blocks), train, val)
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
