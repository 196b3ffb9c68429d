"""Image classification with HF Swin and accelerate, reading generated JPEG files."""
import argparse
import os
import tempfile

import numpy as np
import torch
from accelerate import Accelerator
from PIL import Image
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder
from transformers import SwinConfig, SwinForImageClassification


def write_images(root, classes, per_class, size=256):
    rng = np.random.default_rng(3)
    for c in range(classes):
        folder = os.path.join(root, f"class_{c:02d}")
        os.makedirs(folder)
        for k in range(per_class):
            small = rng.integers(0, 255, (16, 16, 3), dtype=np.uint8)
            Image.fromarray(small).resize((size, size), Image.BICUBIC).save(os.path.join(folder, f"{k}.jpg"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--per-class", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--mixed-precision", type=str, default="fp16", choices=["no", "fp16", "bf16"])
    parser.add_argument("--workers", type=int, default=6)
    args = parser.parse_args()

    accelerator = Accelerator(mixed_precision=args.mixed_precision)
    torch.manual_seed(0)

    with tempfile.TemporaryDirectory() as root:
        write_images(os.path.join(root, "train"), args.classes, args.per_class)
        write_images(os.path.join(root, "val"), args.classes, max(1, args.per_class // 5))
        normalize = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
        train_tf = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(),
                                       transforms.ColorJitter(0.3, 0.3, 0.3), transforms.ToTensor(), normalize])
        val_tf = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(), normalize])
        train_ds = ImageFolder(os.path.join(root, "train"), train_tf)
        val_ds = ImageFolder(os.path.join(root, "val"), val_tf)
        train_loader = DataLoader(train_ds, batch_size=args.batch_size, shuffle=True, num_workers=args.workers)
        val_loader = DataLoader(val_ds, batch_size=args.batch_size, num_workers=args.workers)

        model = SwinForImageClassification(SwinConfig(num_labels=args.classes))
        for p in model.swin.embeddings.parameters():
            p.requires_grad = False
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=5e-4)
        lr_scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-4, epochs=args.epochs,
                                                           steps_per_epoch=len(train_loader))
        model, optimizer, train_loader, val_loader, lr_scheduler = accelerator.prepare(
            model, optimizer, train_loader, val_loader, lr_scheduler)

        for epoch in range(args.epochs):
            model.train()
            for images, labels in train_loader:
                outputs = model(pixel_values=images, labels=labels)
                accelerator.backward(outputs.loss)
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()
            model.eval()
            accurate, num_elems = 0, 0
            for images, labels in val_loader:
                with torch.no_grad():
                    logits = model(pixel_values=images).logits
                preds, refs = accelerator.gather_for_metrics((logits.argmax(-1), labels))
                accurate += (preds == refs).sum().item()
                num_elems += refs.shape[0]
            accelerator.print(f"epoch {epoch}: loss {outputs.loss.item():.4f} acc {100 * accurate / num_elems:.2f}")

    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
