"""VQGAN (taming style): VGG perceptual loss, PatchGAN with adaptive weight, Lightning manual optimization, fp32."""
import argparse
import os
import tempfile

import lightning.pytorch as pl
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader, Dataset


def Normalize(c):
    return nn.GroupNorm(32, c, eps=1e-6, affine=True)


def nonlinearity(x):
    return x * torch.sigmoid(x)


class ResnetBlock(nn.Module):
    def __init__(self, i, o=None, dropout=0.0):
        super().__init__()
        o = o or i
        self.norm1, self.conv1 = Normalize(i), nn.Conv2d(i, o, 3, padding=1)
        self.norm2, self.dropout, self.conv2 = Normalize(o), nn.Dropout(dropout), nn.Conv2d(o, o, 3, padding=1)
        self.nin_shortcut = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x):
        h = self.conv1(nonlinearity(self.norm1(x)))
        h = self.conv2(self.dropout(nonlinearity(self.norm2(h))))
        return self.nin_shortcut(x) + h


class AttnBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm = Normalize(c)
        self.q, self.k, self.v, self.proj_out = (nn.Conv2d(c, c, 1) for _ in range(4))

    def forward(self, x):
        h_ = self.norm(x)
        q, k, v = self.q(h_), self.k(h_), self.v(h_)
        b, c, h, w = q.shape
        w_ = torch.bmm(q.reshape(b, c, h * w).permute(0, 2, 1), k.reshape(b, c, h * w)) * (int(c) ** (-0.5))
        w_ = F.softmax(w_, dim=2)
        h_ = torch.bmm(v.reshape(b, c, h * w), w_.permute(0, 2, 1)).reshape(b, c, h, w)
        return x + self.proj_out(h_)


class Encoder(nn.Module):
    def __init__(self, ch, mult, n_res, z):
        super().__init__()
        layers = [nn.Conv2d(3, ch, 3, padding=1)]
        c = ch
        for lvl, m in enumerate(mult):
            for _ in range(n_res):
                layers.append(ResnetBlock(c, ch * m))
                c = ch * m
                if lvl == len(mult) - 1:
                    layers.append(AttnBlock(c))
            if lvl != len(mult) - 1:
                layers += [nn.ConstantPad2d((0, 1, 0, 1), 0), nn.Conv2d(c, c, 3, stride=2)]
        layers += [ResnetBlock(c), AttnBlock(c), ResnetBlock(c), Normalize(c), nn.SiLU(), nn.Conv2d(c, z, 3, padding=1)]
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


class Decoder(nn.Module):
    def __init__(self, ch, mult, n_res, z):
        super().__init__()
        c = ch * mult[-1]
        layers = [nn.Conv2d(z, c, 3, padding=1), ResnetBlock(c), AttnBlock(c), ResnetBlock(c)]
        for lvl, m in reversed(list(enumerate(mult))):
            for _ in range(n_res + 1):
                layers.append(ResnetBlock(c, ch * m))
                c = ch * m
                if lvl == len(mult) - 1:
                    layers.append(AttnBlock(c))
            if lvl != 0:
                layers += [nn.Upsample(scale_factor=2.0, mode="nearest"), nn.Conv2d(c, c, 3, padding=1)]
        self.net = nn.Sequential(*layers, Normalize(c), nn.SiLU())
        self.conv_out = nn.Conv2d(c, 3, 3, padding=1)

    def forward(self, z):
        return self.conv_out(self.net(z))


class VectorQuantizer(nn.Module):
    def __init__(self, n_e, e_dim, beta=0.25):
        super().__init__()
        self.n_e, self.e_dim, self.beta = n_e, e_dim, beta
        self.embedding = nn.Embedding(n_e, e_dim)
        self.embedding.weight.data.uniform_(-1.0 / n_e, 1.0 / n_e)

    def forward(self, z):
        z = z.permute(0, 2, 3, 1).contiguous()
        flat = z.view(-1, self.e_dim)
        d = flat.pow(2).sum(1, keepdim=True) + self.embedding.weight.pow(2).sum(1) - 2 * flat @ self.embedding.weight.t()
        idx = torch.argmin(d, dim=1)
        z_q = self.embedding(idx).view(z.shape)
        loss = self.beta * torch.mean((z_q.detach() - z) ** 2) + torch.mean((z_q - z.detach()) ** 2)
        z_q = z + (z_q - z).detach()
        e_mean = torch.mean(F.one_hot(idx, self.n_e).float(), dim=0)
        perplexity = torch.exp(-torch.sum(e_mean * torch.log(e_mean + 1e-10)))
        return z_q.permute(0, 3, 1, 2).contiguous(), loss, perplexity


class NLayerDiscriminator(nn.Sequential):
    def __init__(self, ndf=64, n_layers=3):
        seq = [nn.Conv2d(3, ndf, 4, 2, 1), nn.LeakyReLU(0.2, True)]
        m = 1
        for n in range(1, n_layers + 1):
            prev, m = m, min(2 ** n, 8)
            seq += [nn.Conv2d(ndf * prev, ndf * m, 4, 2 if n < n_layers else 1, 1, bias=False), nn.BatchNorm2d(ndf * m),
                    nn.LeakyReLU(0.2, True)]
        super().__init__(*seq, nn.Conv2d(ndf * m, 1, 4, 1, 1))


class Perceptual(nn.Module):
    def __init__(self):
        super().__init__()
        f = torchvision.models.vgg16(weights=None).features
        self.slices = nn.ModuleList([f[:4], f[4:9], f[9:16], f[16:23], f[23:30]])
        for p in self.parameters():
            p.requires_grad = False

    def forward(self, x, y):
        val = 0
        for s in self.slices:
            x, y = s(x), s(y)
            nx = x / (x.pow(2).sum(1, keepdim=True).sqrt() + 1e-10)
            ny = y / (y.pow(2).sum(1, keepdim=True).sqrt() + 1e-10)
            val = val + (nx - ny).pow(2).sum(1, keepdim=True).mean([2, 3], keepdim=True)
        return val


class VQModel(pl.LightningModule):
    def __init__(self, ch=96, mult=(1, 1, 2, 4), n_res=2, n_embed=4096, embed_dim=256, lr=4.5e-6, disc_start=10,
                 disc_weight=0.8):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.encoder, self.decoder = Encoder(ch, mult, n_res, embed_dim), Decoder(ch, mult, n_res, embed_dim)
        self.quant_conv, self.post_quant_conv = nn.Conv2d(embed_dim, embed_dim, 1), nn.Conv2d(embed_dim, embed_dim, 1)
        self.quantize = VectorQuantizer(n_embed, embed_dim)
        self.discriminator = NLayerDiscriminator()
        self.perceptual = Perceptual().eval()

    def forward(self, x):
        quant, diff, ppl = self.quantize(self.quant_conv(self.encoder(x)))
        return self.decoder(self.post_quant_conv(quant)), diff, ppl

    def adaptive_weight(self, nll_loss, g_loss):
        last = self.decoder.conv_out.weight
        nll_grads = torch.autograd.grad(nll_loss, last, retain_graph=True)[0]
        g_grads = torch.autograd.grad(g_loss, last, retain_graph=True)[0]
        w = torch.norm(nll_grads) / (torch.norm(g_grads) + 1e-4)
        return torch.clamp(w, 0.0, 1e4).detach() * self.hparams.disc_weight

    def training_step(self, x, batch_idx):
        opt_ae, opt_disc = self.optimizers()
        step = self.global_step // 2
        factor = 1.0 if step >= self.hparams.disc_start else 0.0
        xrec, qloss, ppl = self(x)
        rec = torch.abs(x - xrec) + self.perceptual(x, xrec)
        nll = rec.mean()
        g_loss = -self.discriminator(xrec).mean()
        w = self.adaptive_weight(nll, g_loss)
        loss = nll + w * factor * g_loss + qloss.mean()
        self.toggle_optimizer(opt_ae)
        opt_ae.zero_grad()
        self.manual_backward(loss)
        opt_ae.step()
        self.untoggle_optimizer(opt_ae)

        self.toggle_optimizer(opt_disc)
        logits_real = self.discriminator(x.detach())
        logits_fake = self.discriminator(xrec.detach())
        d_loss = factor * 0.5 * (F.relu(1. - logits_real).mean() + F.relu(1. + logits_fake).mean())
        opt_disc.zero_grad()
        self.manual_backward(d_loss)
        opt_disc.step()
        self.untoggle_optimizer(opt_disc)
        self.log_dict({"train/aeloss": loss, "train/nll": nll, "train/ppl": ppl, "train/disc": d_loss}, prog_bar=True)

    def validation_step(self, x, batch_idx):
        xrec, qloss, ppl = self(x)
        rec = torch.abs(x - xrec) + self.perceptual(x, xrec)
        self.log("val/rec_loss", rec.mean(), prog_bar=True)
        if batch_idx == 0:
            grid = torchvision.utils.make_grid(torch.cat([x[:4], xrec[:4]]).clamp(-1, 1) * 0.5 + 0.5, nrow=4)
            torchvision.utils.save_image(grid, os.path.join(self.trainer.default_root_dir, f"rec_{self.current_epoch}.png"))

    def configure_optimizers(self):
        ae = list(self.encoder.parameters()) + list(self.decoder.parameters()) + list(self.quantize.parameters()) \
            + list(self.quant_conv.parameters()) + list(self.post_quant_conv.parameters())
        return [torch.optim.Adam(ae, lr=self.hparams.lr, betas=(0.5, 0.9)),
                torch.optim.Adam(self.discriminator.parameters(), lr=self.hparams.lr, betas=(0.5, 0.9))], []


class Imgs(Dataset):
    def __init__(self, n, size, seed):
        self.z = torch.rand(n, 3, 16, 16, generator=torch.Generator().manual_seed(seed)) * 2 - 1
        self.size = size

    def __len__(self):
        return len(self.z)

    def __getitem__(self, i):
        return F.interpolate(self.z[i][None], size=(self.size, self.size), mode="bicubic")[0].clamp(-1, 1)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--batch_size", type=int, default=6)
    p.add_argument("--size", type=int, default=192)
    p.add_argument("--n", type=int, default=150)
    p.add_argument("--ch", type=int, default=96)
    p.add_argument("--epochs", type=int, default=2)
    a = p.parse_args()
    pl.seed_everything(23)
    model = VQModel(ch=a.ch, lr=4.5e-6 * a.batch_size)
    trainer = pl.Trainer(max_epochs=a.epochs, accelerator="auto", devices=1, default_root_dir=tempfile.mkdtemp(),
                         log_every_n_steps=5)
    trainer.fit(model, DataLoader(Imgs(a.n, a.size, 0), a.batch_size, shuffle=True, num_workers=1),
                DataLoader(Imgs(max(a.n // 10, 2), a.size, 1), a.batch_size, num_workers=1))
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
