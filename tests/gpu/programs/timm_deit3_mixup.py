"""DeiT-III small from timm: AdamW via create_optimizer_v2, create_scheduler_v2, mixup, bf16 autocast."""
import tempfile

import timm
import torch
import torch.nn.functional as F
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from torch.utils.data import DataLoader, Dataset

BATCH_SIZE = 96
EPOCHS = 3
NUM_CLASSES = 200
IMG_SIZE = 224
N_TRAIN = 960
N_VAL = 192
CLIP_GRAD = 1.0


class SyntheticImages(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, NUM_CLASSES, (n,), generator=g)
        self.bank = torch.randint(0, 256, (64, 3, IMG_SIZE, IMG_SIZE), generator=g, dtype=torch.uint8)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = self.bank[i % len(self.bank)].float().div(255.0)
        if torch.rand(1) < 0.5:
            img = img.flip(-1)
        return (img - 0.5) / 0.25, int(self.labels[i])


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    train_loader = DataLoader(SyntheticImages(N_TRAIN, 1), BATCH_SIZE, shuffle=True, drop_last=True,
                              num_workers=2, pin_memory=True, persistent_workers=True)
    val_loader = DataLoader(SyntheticImages(N_VAL, 2), BATCH_SIZE, num_workers=2, pin_memory=True)

    model = timm.create_model("deit3_small_patch16_224", pretrained=False, num_classes=NUM_CLASSES,
                              drop_path_rate=0.05, img_size=IMG_SIZE).to(device)
    mixup_fn = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, label_smoothing=0.0, num_classes=NUM_CLASSES)
    criterion = SoftTargetCrossEntropy()
    optimizer = create_optimizer_v2(model, opt="adamw", lr=4e-4, weight_decay=0.05, filter_bias_and_bn=True)
    scheduler, num_epochs = create_scheduler_v2(
        optimizer, sched="cosine", num_epochs=EPOCHS, warmup_epochs=1, warmup_lr=1e-6, min_lr=1e-6,
        step_on_epochs=False, updates_per_epoch=len(train_loader))

    num_updates = 0
    for epoch in range(EPOCHS):
        model.train()
        for i, (images, targets) in enumerate(train_loader):
            images = images.to(device, non_blocking=True)
            targets = targets.to(device, non_blocking=True)
            images, targets = mixup_fn(images, targets)
            with torch.autocast(device_type=device.type, dtype=torch.bfloat16):
                logits = model(images)
                loss = criterion(logits, targets)
            optimizer.zero_grad()
            loss.backward()
            grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_GRAD)
            optimizer.step()
            num_updates += 1
            scheduler.step_update(num_updates=num_updates, metric=loss.item())
            if i % 5 == 0:
                print(f"[{epoch}][{i}/{len(train_loader)}] loss {loss.item():.4f} grad {grad_norm:.3f} "
                      f"lr {optimizer.param_groups[0]['lr']:.2e}")

        model.eval()
        correct, total, val_loss = 0, 0, 0.0
        with torch.no_grad():
            for images, targets in val_loader:
                images, targets = images.to(device), targets.to(device)
                with torch.autocast(device_type=device.type, dtype=torch.bfloat16):
                    logits = model(images)
                val_loss += F.cross_entropy(logits.float(), targets, reduction="sum").item()
                correct += (logits.argmax(1) == targets).sum().item()
                total += targets.numel()
        scheduler.step(epoch + 1, val_loss / total)
        print(f"epoch {epoch}: val loss {val_loss / total:.4f} acc {100 * correct / total:.2f}%")

    with tempfile.NamedTemporaryFile(suffix=".pth") as f:
        torch.save(model.state_dict(), f.name)
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
