"""CycleGAN between two synthetic image domains, Lightning with manual optimisation, image pools, fp32."""
import argparse
import itertools
import random

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Unpaired(Dataset):
    """Domain A: smooth blobs. Domain B: the same kind of blobs with stripes and another palette."""

    def __init__(self, n, size, seed):
        g = torch.Generator().manual_seed(seed)
        self.a, self.b = torch.rand(n, 3, 8, 8, generator=g), torch.rand(n, 1, 8, 8, generator=g)
        self.size = size
        self.stripes = torch.sin(torch.arange(size) * 0.6)[None, None, :].expand(1, size, size)

    def __len__(self):
        return len(self.a)

    def __getitem__(self, i):
        up = lambda z: F.interpolate(z[None], size=self.size, mode="bicubic", align_corners=False)[0]
        a = up(self.a[i]) * 2 - 1
        shade = up(self.b[random.randrange(len(self.b))])
        b = torch.cat([shade, 0.5 * shade, 1 - shade]) * 2 - 1 + 0.3 * self.stripes
        return {"a": a.clamp(-1, 1), "b": b.clamp(-1, 1)}


class ResnetBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(c, c, 3), nn.InstanceNorm2d(c), nn.ReLU(True),
                                  nn.ReflectionPad2d(1), nn.Conv2d(c, c, 3), nn.InstanceNorm2d(c))

    def forward(self, x):
        return x + self.body(x)


def make_generator(c=64, blocks=9):
    layers = [nn.ReflectionPad2d(3), nn.Conv2d(3, c, 7), nn.InstanceNorm2d(c), nn.ReLU(True)]
    for k in (1, 2):
        layers += [nn.Conv2d(c * k, c * k * 2, 3, 2, 1), nn.InstanceNorm2d(c * k * 2), nn.ReLU(True)]
    layers += [ResnetBlock(4 * c) for _ in range(blocks)]
    for k in (4, 2):
        layers += [nn.ConvTranspose2d(c * k, c * k // 2, 3, 2, 1, output_padding=1), nn.InstanceNorm2d(c * k // 2), nn.ReLU(True)]
    return nn.Sequential(*layers, nn.ReflectionPad2d(3), nn.Conv2d(c, 3, 7), nn.Tanh())


def make_discriminator(c=64):
    layers = [nn.Conv2d(3, c, 4, 2, 1), nn.LeakyReLU(0.2, True)]
    for i, o, s in ((c, 2 * c, 2), (2 * c, 4 * c, 2), (4 * c, 8 * c, 1)):
        layers += [nn.Conv2d(i, o, 4, s, 1), nn.InstanceNorm2d(o), nn.LeakyReLU(0.2, True)]
    return nn.Sequential(*layers, nn.Conv2d(8 * c, 1, 4, 1, 1))


class Pool:
    def __init__(self, size=50):
        self.size, self.images = size, []

    def query(self, batch):
        out = []
        for img in batch.detach().split(1):
            if len(self.images) < self.size:
                self.images.append(img)
                out.append(img)
            elif random.random() < 0.5:
                k = random.randrange(self.size)
                out.append(self.images[k])
                self.images[k] = img
            else:
                out.append(img)
        return torch.cat(out)


class CycleGAN(L.LightningModule):
    def __init__(self, width, blocks, lr, epochs):
        super().__init__()
        self.automatic_optimization = False
        self.save_hyperparameters()
        self.ab, self.ba = make_generator(width, blocks), make_generator(width, blocks)
        self.da, self.db = make_discriminator(width), make_discriminator(width)
        for m in self.modules():
            if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
                nn.init.normal_(m.weight, 0, 0.02)
        self.pool_a, self.pool_b = Pool(), Pool()

    def configure_optimizers(self):
        g = torch.optim.Adam(itertools.chain(self.ab.parameters(), self.ba.parameters()), self.hparams.lr, betas=(0.5, 0.999))
        d = torch.optim.Adam(itertools.chain(self.da.parameters(), self.db.parameters()), self.hparams.lr, betas=(0.5, 0.999))
        half = self.hparams.epochs / 2
        decay = lambda e: 1 - max(0, e - half) / (half + 1)
        return [g, d], [torch.optim.lr_scheduler.LambdaLR(o, decay) for o in (g, d)]

    @staticmethod
    def gan(pred, real):
        return F.mse_loss(pred, torch.ones_like(pred) if real else torch.zeros_like(pred))

    def training_step(self, batch, idx):
        a, b = batch["a"], batch["b"]
        opt_g, opt_d = self.optimizers()

        self.toggle_optimizer(opt_g)
        fake_b, fake_a = self.ab(a), self.ba(b)
        loss = self.gan(self.db(fake_b), True) + self.gan(self.da(fake_a), True)
        loss = loss + 10 * (F.l1_loss(self.ba(fake_b), a) + F.l1_loss(self.ab(fake_a), b))
        loss = loss + 5 * (F.l1_loss(self.ba(a), a) + F.l1_loss(self.ab(b), b))
        opt_g.zero_grad()
        self.manual_backward(loss)
        opt_g.step()
        self.untoggle_optimizer(opt_g)

        self.toggle_optimizer(opt_d)
        loss_d = 0.5 * (self.gan(self.da(a), True) + self.gan(self.da(self.pool_a.query(fake_a)), False))
        loss_d = loss_d + 0.5 * (self.gan(self.db(b), True) + self.gan(self.db(self.pool_b.query(fake_b)), False))
        opt_d.zero_grad()
        self.manual_backward(loss_d)
        opt_d.step()
        self.untoggle_optimizer(opt_d)
        if idx % 20 == 0:
            print(f"epoch {self.current_epoch} batch {idx} g {loss.item():.3f} d {loss_d.item():.3f}", flush=True)

    def on_train_epoch_end(self):
        for s in self.lr_schedulers():
            s.step()

    def validation_step(self, batch, idx):
        cycle = F.l1_loss(self.ba(self.ab(batch["a"])), batch["a"])
        self.log("val_cycle", cycle, batch_size=len(batch["a"]))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=2)
    ap.add_argument("--size", type=int, default=256)
    ap.add_argument("--width", type=int, default=64)
    ap.add_argument("--blocks", type=int, default=9)
    ap.add_argument("--images", type=int, default=120)
    ap.add_argument("--epochs", type=int, default=2)
    a = ap.parse_args()
    L.seed_everything(0)
    train = DataLoader(Unpaired(a.images, a.size, 1), a.batch_size, shuffle=True, num_workers=2, drop_last=True)
    val = DataLoader(Unpaired(max(4, a.images // 10), a.size, 2), 4)
    trainer = L.Trainer(max_epochs=a.epochs, devices=1, accelerator="auto", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, check_val_every_n_epoch=2)
    trainer.fit(CycleGAN(a.width, a.blocks, 2e-4, a.epochs), train, val)
    print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
