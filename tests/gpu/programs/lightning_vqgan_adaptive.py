"""VQGAN first stage (taming-transformers style): VQ autoencoder + VGG perceptual loss + PatchGAN, adaptive weight."""
import argparse
import tempfile

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.models import vgg16


def norm(c):
    return nn.GroupNorm(32 if c % 32 == 0 else 8, c, eps=1e-6)


class ResnetBlock(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.norm1, self.conv1 = norm(i), nn.Conv2d(i, o, 3, padding=1)
        self.norm2, self.conv2 = norm(o), nn.Conv2d(o, o, 3, padding=1)
        self.nin = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x):
        h = self.conv1(F.silu(self.norm1(x)))
        h = self.conv2(F.silu(self.norm2(h)))
        return self.nin(x) + h


class AttnBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm, self.q, self.k, self.v, self.proj = norm(c), nn.Conv2d(c, c, 1), nn.Conv2d(c, c, 1), nn.Conv2d(c, c, 1), nn.Conv2d(c, c, 1)

    def forward(self, x):
        h = self.norm(x)
        b, c, hh, ww = h.shape
        q, k, v = self.q(h).flatten(2).transpose(1, 2), self.k(h).flatten(2), self.v(h).flatten(2)
        w = torch.softmax(torch.bmm(q, k) * c ** -0.5, dim=2)
        return x + self.proj(torch.bmm(v, w.transpose(1, 2)).view(b, c, hh, ww))


class Encoder(nn.Module):
    def __init__(self, ch, mult, z):
        super().__init__()
        layers, c = [nn.Conv2d(3, ch, 3, padding=1)], ch
        for i, m in enumerate(mult):
            layers += [ResnetBlock(c, ch * m), ResnetBlock(ch * m, ch * m)]
            c = ch * m
            if i < len(mult) - 1:
                layers.append(nn.Conv2d(c, c, 3, stride=2, padding=1))
        layers += [ResnetBlock(c, c), AttnBlock(c), ResnetBlock(c, c), norm(c), nn.SiLU(), nn.Conv2d(c, z, 3, padding=1)]
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


class Decoder(nn.Module):
    def __init__(self, ch, mult, z):
        super().__init__()
        c = ch * mult[-1]
        layers = [nn.Conv2d(z, c, 3, padding=1), ResnetBlock(c, c), AttnBlock(c), ResnetBlock(c, c)]
        for i, m in reversed(list(enumerate(mult))):
            layers += [ResnetBlock(c, ch * m), ResnetBlock(ch * m, ch * m), ResnetBlock(ch * m, ch * m)]
            c = ch * m
            if i > 0:
                layers += [nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(c, c, 3, padding=1)]
        self.net = nn.Sequential(*layers, norm(c), nn.SiLU())
        self.conv_out = nn.Conv2d(c, 3, 3, padding=1)

    def forward(self, z):
        return self.conv_out(self.net(z))


class VectorQuantizer(nn.Module):
    def __init__(self, n_e, dim, beta=0.25):
        super().__init__()
        self.embedding, self.beta = nn.Embedding(n_e, dim), beta
        self.embedding.weight.data.uniform_(-1.0 / n_e, 1.0 / n_e)

    def forward(self, z):
        z = z.permute(0, 2, 3, 1).contiguous()
        flat = z.view(-1, z.shape[-1])
        d = flat.pow(2).sum(1, keepdim=True) + self.embedding.weight.pow(2).sum(1) - 2 * flat @ self.embedding.weight.t()
        idx = d.argmin(1)
        z_q = self.embedding(idx).view(z.shape)
        loss = self.beta * ((z_q.detach() - z) ** 2).mean() + ((z_q - z.detach()) ** 2).mean()
        z_q = z + (z_q - z).detach()
        return z_q.permute(0, 3, 1, 2).contiguous(), loss, idx


class LPIPS(nn.Module):
    def __init__(self):
        super().__init__()
        feats = vgg16(weights=None).features
        self.slices = nn.ModuleList([feats[:4], feats[4:9], feats[9:16], feats[16:23], feats[23:30]])
        self.lins = nn.ModuleList([nn.Conv2d(c, 1, 1, bias=False) for c in (64, 128, 256, 512, 512)])
        self.requires_grad_(False)

    def forward(self, x, y):
        val = 0
        for s, lin in zip(self.slices, self.lins):
            x, y = s(x), s(y)
            val = val + lin((F.normalize(x, dim=1) - F.normalize(y, dim=1)) ** 2).abs().mean([1, 2, 3], keepdim=True)
        return val


class NLayerDiscriminator(nn.Sequential):
    def __init__(self, ndf=64, n_layers=3):
        layers, c = [nn.Conv2d(3, ndf, 4, 2, 1), nn.LeakyReLU(0.2, True)], ndf
        for n in range(1, n_layers + 1):
            o = ndf * min(2 ** n, 8)
            layers += [nn.Conv2d(c, o, 4, 2 if n < n_layers else 1, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2, True)]
            c = o
        super().__init__(*layers, nn.Conv2d(c, 1, 4, 1, 1))


class VQModel(L.LightningModule):
    def __init__(self, ch=96, mult=(1, 1, 2, 4), z=256, n_embed=1024, lr=4.5e-6 * 8, disc_start=10, disc_weight=0.8):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.encoder, self.decoder = Encoder(ch, mult, z), Decoder(ch, mult, z)
        self.quantize = VectorQuantizer(n_embed, z)
        self.quant_conv, self.post_quant_conv = nn.Conv2d(z, z, 1), nn.Conv2d(z, z, 1)
        self.perceptual, self.discriminator = LPIPS().eval(), NLayerDiscriminator()

    def forward(self, x):
        q, emb_loss, idx = self.quantize(self.quant_conv(self.encoder(x)))
        return self.decoder(self.post_quant_conv(q)), emb_loss, idx

    def adaptive_weight(self, nll, g_loss):
        last = self.decoder.conv_out.weight
        nll_g = torch.autograd.grad(nll, last, retain_graph=True)[0]
        g_g = torch.autograd.grad(g_loss, last, retain_graph=True)[0]
        return torch.clamp(torch.norm(nll_g) / (torch.norm(g_g) + 1e-4), 0.0, 1e4).detach() * self.hparams.disc_weight

    def training_step(self, x, batch_idx):
        opt_ae, opt_d = self.optimizers()
        factor = 1.0 if self.global_step // 2 >= self.hparams.disc_start else 0.0
        self.toggle_optimizer(opt_ae)
        xrec, emb_loss, idx = self(x)
        nll = ((x - xrec).abs() + self.perceptual(x, xrec)).mean()
        g_loss = -self.discriminator(xrec).mean()
        loss = nll + self.adaptive_weight(nll, g_loss) * factor * g_loss + emb_loss
        opt_ae.zero_grad()
        self.manual_backward(loss)
        opt_ae.step()
        self.untoggle_optimizer(opt_ae)

        self.toggle_optimizer(opt_d)
        real, fake = self.discriminator(x.detach()), self.discriminator(xrec.detach())
        d_loss = factor * 0.5 * (F.relu(1 - real).mean() + F.relu(1 + fake).mean())
        opt_d.zero_grad()
        self.manual_backward(d_loss)
        opt_d.step()
        self.untoggle_optimizer(opt_d)
        self.log_dict({"train/nll": nll, "train/g": g_loss, "train/d": d_loss, "train/codes": float(len(idx.unique()))}, prog_bar=True)

    def validation_step(self, x, batch_idx):
        xrec, emb_loss, _ = self(x)
        rec = ((x - xrec).abs() + self.perceptual(x, xrec)).mean()
        self.log_dict({"val/rec_loss": rec, "val/emb": emb_loss})

    def configure_optimizers(self):
        ae = [p for m in (self.encoder, self.decoder, self.quantize, self.quant_conv, self.post_quant_conv) for p in m.parameters()]
        return [torch.optim.Adam(ae, lr=self.hparams.lr, betas=(0.5, 0.9)),
                torch.optim.Adam(self.discriminator.parameters(), lr=self.hparams.lr, betas=(0.5, 0.9))], []


class Pics(Dataset):
    def __init__(self, n, size, seed):
        self.low, self.size = torch.rand(n, 3, 16, 16, generator=torch.Generator().manual_seed(seed)), size

    def __len__(self):
        return len(self.low)

    def __getitem__(self, i):
        return F.interpolate(self.low[i:i + 1], size=self.size, mode="bilinear")[0] * 2 - 1


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--size", type=int, default=128)
    ap.add_argument("--ch", type=int, default=96)
    ap.add_argument("--batch", type=int, default=6)
    ap.add_argument("--n", type=int, default=180)
    ap.add_argument("--epochs", type=int, default=2)
    a = ap.parse_args()
    L.seed_everything(23)
    train = DataLoader(Pics(a.n, a.size, 0), batch_size=a.batch, shuffle=True, num_workers=1, drop_last=True)
    val = DataLoader(Pics(a.n // 6, a.size, 1), batch_size=a.batch, num_workers=1)
    tmp = tempfile.mkdtemp()
    trainer = L.Trainer(max_epochs=a.epochs, accelerator="auto", devices=1, default_root_dir=tmp, log_every_n_steps=5, logger=False,
                        callbacks=[L.pytorch.callbacks.ModelCheckpoint(dirpath=tmp, monitor="val/rec_loss")])
    trainer.fit(VQModel(ch=a.ch), train, val)
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
