"""SimCLR pre-training with PyTorch Lightning, resnet-34, 16-bit mixed precision."""
import torch
import torch.nn.functional as F
import torchvision
from lightning.pytorch import LightningModule, Trainer, seed_everything
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

BATCH_SIZE = 256
IMAGE_SIZE = 96
NUM_IMAGES = 8192
MAX_EPOCHS = 2
PRECISION = "16-mixed"


class ContrastiveViews(Dataset):
    def __init__(self, n):
        self.n = n
        self.transform = v2.Compose([
            v2.RandomResizedCrop(IMAGE_SIZE, scale=(0.2, 1.0), antialias=True),
            v2.RandomHorizontalFlip(),
            v2.RandomApply([v2.ColorJitter(0.5, 0.5, 0.5, 0.1)], p=0.8),
            v2.RandomGrayscale(p=0.2),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize((0.5,) * 3, (0.5,) * 3),
        ])

    def __len__(self):
        return self.n

    def __getitem__(self, idx):
        g = torch.Generator().manual_seed(idx)
        img = torch.randint(0, 256, (3, IMAGE_SIZE, IMAGE_SIZE), dtype=torch.uint8, generator=g)
        return self.transform(img), self.transform(img)


class SimCLR(LightningModule):
    def __init__(self, hidden_dim=128, lr=5e-4, temperature=0.07, weight_decay=1e-4, max_epochs=MAX_EPOCHS):
        super().__init__()
        self.save_hyperparameters()
        self.convnet = torchvision.models.resnet34(num_classes=4 * hidden_dim)
        self.convnet.conv1 = nn.Conv2d(3, 64, 3, stride=1, padding=1, bias=False)
        self.convnet.fc = nn.Sequential(self.convnet.fc, nn.ReLU(inplace=True), nn.Linear(4 * hidden_dim, hidden_dim))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=self.hparams.weight_decay)
        sched = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=self.hparams.max_epochs)
        return [optimizer], [sched]

    def training_step(self, batch, batch_idx):
        imgs = torch.cat(batch, dim=0)
        feats = self.convnet(imgs)
        cos_sim = F.cosine_similarity(feats[:, None, :], feats[None, :, :], dim=-1)
        self_mask = torch.eye(cos_sim.shape[0], dtype=torch.bool, device=cos_sim.device)
        cos_sim.masked_fill_(self_mask, -9e15 if cos_sim.dtype == torch.float32 else -6e4)
        pos_mask = self_mask.roll(shifts=cos_sim.shape[0] // 2, dims=0)
        cos_sim = cos_sim / self.hparams.temperature
        nll = (-cos_sim[pos_mask] + torch.logsumexp(cos_sim, dim=-1)).mean()
        self.log("train_loss", nll, prog_bar=True)
        return nll


seed_everything(42)
loader = DataLoader(ContrastiveViews(NUM_IMAGES), batch_size=BATCH_SIZE, shuffle=True, drop_last=True,
                    num_workers=12, pin_memory=True)
trainer = Trainer(accelerator="gpu", devices=1, precision=PRECISION, max_epochs=MAX_EPOCHS,
                  logger=False, enable_checkpointing=False, log_every_n_steps=5)
model = SimCLR()
trainer.fit(model, loader)
print("final loss", float(trainer.callback_metrics["train_loss"]))
if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
