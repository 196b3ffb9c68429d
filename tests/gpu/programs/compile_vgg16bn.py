"""VGG16-BN trained with torch.compile, bf16 autocast, channels_last, SGD Nesterov."""
import os
import tempfile
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset
from torchvision.models import vgg16_bn

BATCH_SIZE = 64
EPOCHS = 2
IMG = 224
N_TRAIN = 768
N_VAL = 256
NUM_CLASSES = 101


class FoodImages(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.images = torch.randint(0, 256, (n, 3, IMG, IMG), generator=g, dtype=torch.uint8)
        self.targets = torch.randint(0, NUM_CLASSES, (n,), generator=g)

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, i):
        x = self.images[i].float() / 255.0
        return (x - 0.45) / 0.225, self.targets[i]


def main():
    torch.manual_seed(3)
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda")
    train_loader = DataLoader(FoodImages(N_TRAIN, 0), BATCH_SIZE, shuffle=True, drop_last=True,
                              num_workers=2, pin_memory=True)
    val_loader = DataLoader(FoodImages(N_VAL, 1), BATCH_SIZE, num_workers=2, pin_memory=True, drop_last=True)

    model = vgg16_bn(num_classes=NUM_CLASSES).to(device).to(memory_format=torch.channels_last)
    compiled = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS * len(train_loader))
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    for epoch in range(EPOCHS):
        t0 = time.time()
        compiled.train()
        for i, (x, y) in enumerate(train_loader):
            x = x.to(device, non_blocking=True).to(memory_format=torch.channels_last)
            y = y.to(device, non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                loss = criterion(compiled(x), y)
            loss.backward()
            optimizer.step()
            scheduler.step()
            if i % 4 == 0:
                print(f"epoch {epoch} step {i} loss {loss.item():.4f}")
        compiled.eval()
        correct = 0
        with torch.no_grad():
            for x, y in val_loader:
                x = x.to(device, non_blocking=True).to(memory_format=torch.channels_last)
                y = y.to(device, non_blocking=True)
                with torch.autocast(device.type, dtype=torch.bfloat16):
                    out = compiled(x)
                correct += (out.argmax(1) == y).sum().item()
        print(f"epoch {epoch} acc {correct / (len(val_loader) * BATCH_SIZE):.4f} ({time.time() - t0:.1f}s)")

    with tempfile.TemporaryDirectory() as tmp:
        torch.save(model.state_dict(), os.path.join(tmp, "vgg16_bn.pth"))
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
