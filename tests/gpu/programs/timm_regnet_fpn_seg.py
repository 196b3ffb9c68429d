# Road segmentation: timm RegNetY features + FPN decoder, dice + focal loss. fp32 with TF32 matmuls.
import timm
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

BATCH = 8
SIZE = 512
EPOCHS = 3
TRAIN_TILES = 320
VAL_TILES = 48
BACKBONE = "regnety_032"

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True


class RoadTiles(Dataset):
    def __init__(self, n, seed=0):
        self.n, self.seed = n, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed + i)
        image = torch.rand(4, SIZE, SIZE, generator=g)
        lines = F.interpolate(torch.randn(1, 1, SIZE // 32, SIZE // 32, generator=g), size=(SIZE, SIZE), mode="bicubic")
        mask = (lines[0].abs() < 0.1).float()
        return image, mask


class ConvBlock(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class FPNSeg(nn.Module):
    def __init__(self, backbone, in_chans=4, dim=128, out=1):
        super().__init__()
        self.encoder = timm.create_model(backbone, pretrained=False, features_only=True, in_chans=in_chans,
                                         out_indices=(1, 2, 3, 4))
        chs = self.encoder.feature_info.channels()
        self.lateral = nn.ModuleList(nn.Conv2d(c, dim, 1) for c in chs)
        self.smooth = nn.ModuleList(ConvBlock(dim, dim) for _ in chs)
        self.fuse = ConvBlock(dim * len(chs), dim)
        self.dropout = nn.Dropout2d(0.2)
        self.head = nn.Conv2d(dim, out, 1)

    def forward(self, x):
        feats = [l(f) for l, f in zip(self.lateral, self.encoder(x))]
        for i in range(len(feats) - 1, 0, -1):
            feats[i - 1] = feats[i - 1] + F.interpolate(feats[i], size=feats[i - 1].shape[-2:], mode="nearest")
        feats = [s(f) for s, f in zip(self.smooth, feats)]
        size = feats[0].shape[-2:]
        merged = torch.cat([F.interpolate(f, size=size, mode="bilinear", align_corners=False) for f in feats], 1)
        y = self.head(self.dropout(self.fuse(merged)))
        return F.interpolate(y, size=x.shape[-2:], mode="bilinear", align_corners=False)


def dice_loss(logits, target, eps=1.0):
    p = logits.sigmoid()
    inter = (p * target).sum(dim=(1, 2, 3))
    return (1 - (2 * inter + eps) / (p.sum(dim=(1, 2, 3)) + target.sum(dim=(1, 2, 3)) + eps)).mean()


def focal_loss(logits, target, gamma=2.0):
    bce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    pt = torch.exp(-bce)
    return ((1 - pt) ** gamma * bce).mean()


def iou(logits, target):
    pred = logits > 0
    target = target > 0.5
    return ((pred & target).sum() / ((pred | target).sum() + 1e-6)).item()


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = FPNSeg(BACKBONE).to(device)
optimizer = torch.optim.AdamW([
    {"params": model.encoder.parameters(), "lr": 1e-4},
    {"params": [p for n, p in model.named_parameters() if not n.startswith("encoder")], "lr": 1e-3},
], weight_decay=1e-2)
scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=EPOCHS, power=0.9)
train_loader = DataLoader(RoadTiles(TRAIN_TILES), BATCH, shuffle=True, num_workers=4, pin_memory=True, drop_last=True)
val_loader = DataLoader(RoadTiles(VAL_TILES, 10 ** 6), BATCH, num_workers=4, pin_memory=True)

for epoch in range(EPOCHS):
    model.train()
    bar = tqdm(train_loader, desc=f"epoch {epoch}")
    for image, mask in bar:
        image, mask = image.to(device), mask.to(device)
        logits = model(image)
        loss = dice_loss(logits, mask) + 10 * focal_loss(logits, mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        bar.set_postfix(loss=f"{loss.item():.4f}")
    scheduler.step()

    model.eval()
    scores = []
    for image, mask in val_loader:
        with torch.no_grad():
            logits = model(image.to(device))
        scores.append(iou(logits, mask.to(device)))
    print(f"epoch {epoch} val IoU {sum(scores) / len(scores):.4f}")

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
