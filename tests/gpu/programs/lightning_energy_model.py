"""Deep energy-based model with Langevin sampling and a replay buffer (UvA DL tutorial style), 64x64 images."""
import random
import sys
import tempfile

import numpy as np
import pytorch_lightning as pl
import torch
import torch.nn as nn
import torch.utils.data as data
from pytorch_lightning.callbacks import Callback, LearningRateMonitor, ModelCheckpoint
from pytorch_lightning.loggers import CSVLogger

IMG = (3, 64, 64)
HIDDEN = 64
BATCH = 64
N_TRAIN, N_VAL = 1280, 192
STEPS = 30
EPOCHS = 2


class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


class CNNModel(nn.Module):
    def __init__(self, hidden=HIDDEN):
        super().__init__()
        c1, c2, c3 = hidden, hidden * 2, hidden * 4
        self.cnn_layers = nn.Sequential(
            nn.Conv2d(3, c1, 3, padding=1), Swish(),
            nn.Conv2d(c1, c1, 4, stride=2, padding=1), Swish(),
            nn.Conv2d(c1, c2, 3, padding=1), Swish(),
            nn.Conv2d(c2, c2, 4, stride=2, padding=1), Swish(),
            nn.Conv2d(c2, c3, 3, padding=1), Swish(),
            nn.Conv2d(c3, c3, 4, stride=2, padding=1), Swish(),
            nn.Conv2d(c3, c3, 4, stride=2, padding=1), Swish(),
            nn.Flatten(), nn.Linear(c3 * 16, c3), Swish(), nn.Linear(c3, 1))

    def forward(self, x):
        return self.cnn_layers(x).squeeze(-1)


class Sampler:
    def __init__(self, model, img_shape, sample_size, max_len=4096):
        self.model, self.img_shape, self.sample_size, self.max_len = model, img_shape, sample_size, max_len
        self.examples = [torch.rand((1,) + img_shape) * 2 - 1 for _ in range(sample_size)]

    def sample_new_exmps(self, steps=60, step_size=10):
        n_new = np.random.binomial(self.sample_size, 0.05)
        rand_imgs = torch.rand((n_new,) + self.img_shape) * 2 - 1
        old_imgs = torch.cat(random.choices(self.examples, k=self.sample_size - n_new), dim=0)
        device = next(self.model.parameters()).device
        inp_imgs = torch.cat([rand_imgs, old_imgs], dim=0).detach().to(device)
        inp_imgs = Sampler.generate_samples(self.model, inp_imgs, steps=steps, step_size=step_size)
        self.examples = list(inp_imgs.to(torch.device("cpu")).chunk(self.sample_size, dim=0)) + self.examples
        self.examples = self.examples[:self.max_len]
        return inp_imgs

    @staticmethod
    def generate_samples(model, inp_imgs, steps=60, step_size=10, return_img_per_step=False):
        is_training = model.training
        model.eval()
        for p in model.parameters():
            p.requires_grad = False
        inp_imgs.requires_grad = True
        had_gradients_enabled = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        noise = torch.randn(inp_imgs.shape, device=inp_imgs.device)
        imgs_per_step = []
        for _ in range(steps):
            noise.normal_(0, 0.005)
            inp_imgs.data.add_(noise.data)
            inp_imgs.data.clamp_(min=-1.0, max=1.0)
            out_imgs = -model(inp_imgs)
            out_imgs.sum().backward()
            inp_imgs.grad.data.clamp_(-0.03, 0.03)
            inp_imgs.data.add_(-step_size * inp_imgs.grad.data)
            inp_imgs.grad.detach_()
            inp_imgs.grad.zero_()
            inp_imgs.data.clamp_(min=-1.0, max=1.0)
            if return_img_per_step:
                imgs_per_step.append(inp_imgs.clone().detach())
        for p in model.parameters():
            p.requires_grad = True
        model.train(is_training)
        torch.set_grad_enabled(had_gradients_enabled)
        return torch.stack(imgs_per_step, dim=0) if return_img_per_step else inp_imgs


class DeepEnergyModel(pl.LightningModule):
    def __init__(self, img_shape, batch_size, alpha=0.1, lr=1e-4, beta1=0.0):
        super().__init__()
        self.save_hyperparameters()
        self.cnn = CNNModel()
        self.sampler = Sampler(self.cnn, img_shape=img_shape, sample_size=batch_size)

    def forward(self, x):
        return self.cnn(x)

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr, betas=(self.hparams.beta1, 0.999))
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.97)]

    def training_step(self, batch, batch_idx):
        real_imgs, _ = batch
        small_noise = torch.randn_like(real_imgs) * 0.005
        real_imgs.add_(small_noise).clamp_(min=-1.0, max=1.0)
        fake_imgs = self.sampler.sample_new_exmps(steps=STEPS, step_size=10)
        inp_imgs = torch.cat([real_imgs, fake_imgs], dim=0)
        real_out, fake_out = self.cnn(inp_imgs).chunk(2, dim=0)
        reg_loss = self.hparams.alpha * (real_out ** 2 + fake_out ** 2).mean()
        cdiv_loss = fake_out.mean() - real_out.mean()
        loss = reg_loss + cdiv_loss
        self.log("loss", loss)
        self.log("loss_contrastive_divergence", cdiv_loss)
        self.log("metrics_avg_real", real_out.mean())
        self.log("metrics_avg_fake", fake_out.mean())
        return loss

    def validation_step(self, batch, batch_idx):
        real_imgs, _ = batch
        fake_imgs = torch.rand_like(real_imgs) * 2 - 1
        real_out, fake_out = self.cnn(torch.cat([real_imgs, fake_imgs], dim=0)).chunk(2, dim=0)
        self.log("val_contrastive_divergence", fake_out.mean() - real_out.mean())


class GenerateCallback(Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        start = torch.rand((8,) + IMG).to(pl_module.device) * 2 - 1
        pl_module.eval()
        imgs = Sampler.generate_samples(pl_module.cnn, start, steps=64, step_size=10, return_img_per_step=True)
        pl_module.train()
        torch.save(imgs[::16].cpu(), f"{trainer.default_root_dir}/gen_{trainer.current_epoch}.pt")


def images(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = nn.functional.interpolate(torch.rand(n, 3, 8, 8, generator=g), size=IMG[1:], mode="bilinear") * 2 - 1
    return data.TensorDataset(x, torch.zeros(n, dtype=torch.long))


if __name__ == "__main__":
    pl.seed_everything(42)
    root = tempfile.mkdtemp()
    train_loader = data.DataLoader(images(N_TRAIN, 0), batch_size=BATCH, shuffle=True, drop_last=True, num_workers=0, pin_memory=True)
    val_loader = data.DataLoader(images(N_VAL, 1), batch_size=2 * BATCH, num_workers=0)
    trainer = pl.Trainer(default_root_dir=root, accelerator="auto", devices=1, max_epochs=EPOCHS, gradient_clip_val=0.1, logger=CSVLogger(root),
                         log_every_n_steps=5, enable_progress_bar=sys.stdout.isatty(),
                         callbacks=[ModelCheckpoint(save_weights_only=True, mode="min", monitor="val_contrastive_divergence"), GenerateCallback(), LearningRateMonitor("epoch")])
    model = DeepEnergyModel(IMG, BATCH)
    trainer.fit(model, train_loader, val_loader)
    print(trainer.callback_metrics)
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
