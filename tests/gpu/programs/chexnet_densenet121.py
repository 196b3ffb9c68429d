# CheXNet re-implementation: DenseNet-121, 14 findings, mixed precision
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torchvision
from sklearn.metrics import roc_auc_score
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2 as T

N_CLASSES = 14
CLASS_NAMES = ['Atelectasis', 'Cardiomegaly', 'Effusion', 'Infiltration', 'Mass', 'Nodule', 'Pneumonia',
               'Pneumothorax', 'Consolidation', 'Edema', 'Emphysema', 'Fibrosis', 'Pleural_Thickening', 'Hernia']
BATCH_SIZE = 48
N_TRAIN = 1200
N_VAL = 300
EPOCHS = 2
IMG = 224
device = torch.device("cuda")

torch.manual_seed(0)
np.random.seed(0)


class ChestXrayDataSet(Dataset):
    """Synthetic radiographs: a smooth field plus a blob for each finding."""

    def __init__(self, n, transform, seed):
        g = torch.Generator().manual_seed(seed)
        small = torch.rand(n, 1, 16, 16, generator=g)
        self.labels = (torch.rand(n, N_CLASSES, generator=g) < 0.2).float()
        for c in range(N_CLASSES):
            small[:, 0, 1 + c, 2 + c // 2] += 1.5 * self.labels[:, c]
        self.images = small
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        img = nn.functional.interpolate(self.images[index][None], size=(256, 256), mode="bilinear")[0]
        img = (img.clamp(0, 2.5) * 100).to(torch.uint8).expand(3, -1, -1)
        return self.transform(img), self.labels[index]


class DenseNet121(nn.Module):
    def __init__(self, out_size):
        super(DenseNet121, self).__init__()
        self.densenet121 = torchvision.models.densenet121(weights=None)
        num_ftrs = self.densenet121.classifier.in_features
        self.densenet121.classifier = nn.Sequential(
            nn.Linear(num_ftrs, out_size),
        )

    def forward(self, x):
        return self.densenet121(x)


def compute_AUCs(gt, pred):
    gt_np, pred_np = gt.cpu().numpy(), pred.cpu().numpy()
    return [roc_auc_score(gt_np[:, i], pred_np[:, i]) if gt_np[:, i].min() != gt_np[:, i].max() else 0.5
            for i in range(N_CLASSES)]


def main():
    normalize = T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    train_tf = T.Compose([T.RandomCrop(IMG), T.RandomHorizontalFlip(), T.ToDtype(torch.float32, scale=True), normalize])
    val_tf = T.Compose([T.CenterCrop(IMG), T.ToDtype(torch.float32, scale=True), normalize])
    train_loader = DataLoader(ChestXrayDataSet(N_TRAIN, train_tf, 1), batch_size=BATCH_SIZE, shuffle=True,
                              num_workers=2, pin_memory=True)
    val_loader = DataLoader(ChestXrayDataSet(N_VAL, val_tf, 2), batch_size=BATCH_SIZE, shuffle=False, num_workers=2,
                            pin_memory=True)

    model = DenseNet121(N_CLASSES).to(device)
    pos_weight = torch.full((N_CLASSES,), 4.0, device=device)
    criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-5)
    scheduler = ReduceLROnPlateau(optimizer, factor=0.1, patience=1, mode='min')
    scaler = torch.amp.GradScaler("cuda")

    best_auc = 0.0
    ckpt = os.path.join(tempfile.mkdtemp(), 'm-chexnet.pth.tar')
    for epoch in range(EPOCHS):
        model.train()
        running = 0.0
        for i, (inp, target) in enumerate(train_loader):
            inp, target = inp.to(device, non_blocking=True), target.to(device, non_blocking=True)
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                out = model(inp)
                loss = criterion(out, target)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            running += loss.item()
            if i % 10 == 0:
                print(f'epoch {epoch} step {i}/{len(train_loader)} loss {loss.item():.4f}')

        model.eval()
        gt = torch.FloatTensor().to(device)
        pred = torch.FloatTensor().to(device)
        val_loss = 0.0
        with torch.no_grad():
            for inp, target in val_loader:
                inp, target = inp.to(device), target.to(device)
                with torch.autocast("cuda", dtype=torch.float16):
                    output = model(inp)
                    val_loss += criterion(output, target).item()
                gt = torch.cat((gt, target), 0)
                pred = torch.cat((pred, torch.sigmoid(output).float()), 0)
        scheduler.step(val_loss)
        AUROCs = compute_AUCs(gt, pred)
        auc_avg = float(np.mean(AUROCs))
        print(f'epoch {epoch}: train {running / len(train_loader):.4f} val {val_loss / len(val_loader):.4f} AUROC {auc_avg:.3f}')
        for name, a in zip(CLASS_NAMES, AUROCs):
            print(f'  The AUROC of {name} is {a:.3f}')
        if auc_avg > best_auc:
            best_auc = auc_avg
            torch.save({'epoch': epoch + 1, 'state_dict': model.state_dict(), 'optimizer': optimizer.state_dict()}, ckpt)


if __name__ == '__main__':
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
