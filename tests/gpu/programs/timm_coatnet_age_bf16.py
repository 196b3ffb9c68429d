"""Age estimation (label distribution learning) with a timm CoAtNet backbone, bf16 autocast."""
import argparse

import timm
import torch
from timm.utils import ModelEmaV3
from torch import nn
from torch.utils.data import DataLoader, Dataset

AGES = 101


class FaceAges(Dataset):
    def __init__(self, n, size, seed):
        self.n, self.size = n, size
        self.ages = torch.randint(1, 100, (n,), generator=torch.Generator().manual_seed(seed))

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        img = torch.randn(3, self.size, self.size)
        if torch.rand(()) < 0.5:
            img = img.flip(-1)
        return img, self.ages[i].float()


class AgeNet(nn.Module):
    def __init__(self, name, size):
        super().__init__()
        self.backbone = timm.create_model(name, pretrained=False, num_classes=0, img_size=size, drop_path_rate=0.1)
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(self.backbone.num_features, AGES))
        self.register_buffer("ages", torch.arange(AGES).float())

    def forward(self, x):
        log_p = self.head(self.backbone(x)).float().log_softmax(-1)
        return log_p, (log_p.exp() * self.ages).sum(-1)


def criterion(log_p, mean, age, ages, sigma=2.0):
    target = torch.exp(-((ages[None] - age[:, None]) ** 2) / (2 * sigma ** 2))
    target = target / target.sum(-1, keepdim=True)
    kl = nn.functional.kl_div(log_p, target, reduction="batchmean")
    return kl + 0.1 * nn.functional.l1_loss(mean, age)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backbone", default="coatnet_rmlp_1_rw_224")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch-size", type=int, default=48)
    parser.add_argument("--train", type=int, default=2400)
    parser.add_argument("--val", type=int, default=480)
    parser.add_argument("--epochs", type=int, default=2)
    opt = parser.parse_args()
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)

    net = AgeNet(opt.backbone, opt.size).to(device)
    ema = ModelEmaV3(net, decay=0.999)
    decay = [p for p in net.parameters() if p.ndim > 1]
    rest = [p for p in net.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}], lr=3e-4)
    train_loader = DataLoader(FaceAges(opt.train, opt.size, 0), opt.batch_size, shuffle=True, num_workers=6, drop_last=True)
    val_loader = DataLoader(FaceAges(opt.val, opt.size, 1), opt.batch_size, num_workers=6)

    for epoch in range(opt.epochs):
        net.train()
        for it, (img, age) in enumerate(train_loader):
            img, age = img.to(device), age.to(device)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                log_p, mean = net(img)
                loss = criterion(log_p, mean, age, net.ages)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            ema.update(net)
            if it % 10 == 0:
                print(f"[{epoch}/{it}] loss {loss.item():.4f}")
        for name, m in (("net", net), ("ema", ema.module)):
            m.eval()
            err = 0.0
            with torch.no_grad():
                for img, age in val_loader:
                    with torch.autocast(device.type, dtype=torch.bfloat16):
                        _, mean = m(img.to(device))
                    err += (mean.cpu() - age).abs().sum().item()
            print(f"epoch {epoch} {name} MAE {err / opt.val:.3f}")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
