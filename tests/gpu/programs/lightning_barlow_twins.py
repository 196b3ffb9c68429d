# Barlow Twins with a LARS optimizer and an online linear probe, PyTorch Lightning (bf16-mixed)
import math
import tempfile

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2 as T
from torchmetrics.classification import MulticlassAccuracy

CLASSES = 10


class LARS(torch.optim.Optimizer):
    def __init__(self, params, lr, weight_decay=0, momentum=0.9, eta=0.001):
        defaults = dict(lr=lr, weight_decay=weight_decay, momentum=momentum, eta=eta)
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for g in self.param_groups:
            for p in g['params']:
                dp = p.grad
                if dp is None:
                    continue
                if p.ndim > 1:
                    dp = dp.add(p, alpha=g['weight_decay'])
                    param_norm = torch.norm(p)
                    update_norm = torch.norm(dp)
                    one = torch.ones_like(param_norm)
                    q = torch.where(param_norm > 0., torch.where(update_norm > 0,
                                    (g['eta'] * param_norm / update_norm), one), one)
                    dp = dp.mul(q)
                param_state = self.state[p]
                if 'mu' not in param_state:
                    param_state['mu'] = torch.zeros_like(p)
                mu = param_state['mu']
                mu.mul_(g['momentum']).add_(dp)
                p.add_(mu, alpha=-g['lr'])
        return loss


class TwoViews(Dataset):
    def __init__(self, n, size, train, seed):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, CLASSES, (n,), generator=g)
        self.images = torch.randint(0, 200, (n, 3, size, size), dtype=torch.uint8, generator=g)
        for i, y in enumerate(self.labels.tolist()):
            self.images[i, :, y * 8:y * 8 + 8] = 230
        self.train = train
        norm = [T.ToDtype(torch.float32, scale=True), T.Normalize([0.45] * 3, [0.25] * 3)]
        self.aug = T.Compose([T.RandomResizedCrop(size, scale=(0.3, 1.0), antialias=False), T.RandomHorizontalFlip(),
                              T.RandomGrayscale(0.2)] + norm)
        self.plain = T.Compose(norm)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = self.images[i]
        if self.train:
            return self.aug(img), self.aug(img), self.labels[i]
        return self.plain(img), self.labels[i]


class BarlowTwins(L.LightningModule):
    def __init__(self, projector=(4096, 4096, 4096), lambd=0.0051, lr=0.2, max_steps=100):
        super().__init__()
        self.save_hyperparameters()
        self.backbone = torchvision.models.resnet50(zero_init_residual=True)
        self.backbone.fc = nn.Identity()
        sizes = [2048] + list(projector)
        layers = []
        for i in range(len(sizes) - 2):
            layers += [nn.Linear(sizes[i], sizes[i + 1], bias=False), nn.BatchNorm1d(sizes[i + 1]), nn.ReLU(inplace=True)]
        layers.append(nn.Linear(sizes[-2], sizes[-1], bias=False))
        self.projector = nn.Sequential(*layers)
        self.bn = nn.BatchNorm1d(sizes[-1], affine=False)
        self.probe = nn.Linear(2048, CLASSES)
        self.acc = MulticlassAccuracy(CLASSES)

    @staticmethod
    def off_diagonal(x):
        n, m = x.shape
        return x.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten()

    def training_step(self, batch, batch_idx):
        y1, y2, labels = batch
        h1, h2 = self.backbone(y1), self.backbone(y2)
        z1, z2 = self.projector(h1), self.projector(h2)
        c = self.bn(z1).T @ self.bn(z2)
        c.div_(y1.shape[0])
        on_diag = torch.diagonal(c).add_(-1).pow_(2).sum()
        off_diag = self.off_diagonal(c).pow_(2).sum()
        loss = on_diag + self.hparams.lambd * off_diag
        probe_loss = F.cross_entropy(self.probe(h1.detach()), labels)
        self.log_dict({"train/loss": loss, "train/probe": probe_loss}, prog_bar=True)
        return loss + probe_loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self.probe(self.backbone(x))
        self.acc(logits, y)
        self.log("val/acc", self.acc, prog_bar=True)

    def configure_optimizers(self):
        opt = LARS(self.parameters(), lr=self.hparams.lr, weight_decay=1e-6)
        warm = max(1, self.hparams.max_steps // 10)

        def lr_at(step):
            if step < warm:
                return step / warm
            t = (step - warm) / max(1, self.hparams.max_steps - warm)
            return 0.5 * (1 + math.cos(math.pi * t)) + 0.001
        sched = torch.optim.lr_scheduler.LambdaLR(opt, lr_at)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "step"}}


def main(n_train=1536, n_val=256, batch_size=128, size=160, epochs=2):
    L.seed_everything(7)
    train = DataLoader(TwoViews(n_train, size, True, 0), batch_size, shuffle=True, num_workers=2, drop_last=True,
                       pin_memory=True, persistent_workers=True)
    val = DataLoader(TwoViews(n_val, size, False, 1), batch_size, num_workers=1)
    model = BarlowTwins(max_steps=epochs * len(train))
    out = tempfile.mkdtemp()
    trainer = L.Trainer(max_epochs=epochs, accelerator="auto", devices=1, precision="bf16-mixed",
                        logger=CSVLogger(out), log_every_n_steps=4,
                        callbacks=[ModelCheckpoint(out, monitor="val/acc", mode="max", save_last=True),
                                   LearningRateMonitor("step")])
    trainer.fit(model, train, val)


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
