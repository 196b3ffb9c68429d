"""LoRA fine-tuning of a ViT-B/16 with peft; the classifier is trained in full."""
import argparse

import torch
from peft import LoraConfig, get_peft_model
from torch.utils.data import DataLoader, Dataset
from transformers import ViTConfig, ViTForImageClassification


class Food(Dataset):
    def __init__(self, n, size, labels):
        self.n, self.size, self.labels = n, size, labels

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return {"pixel_values": torch.rand(3, self.size, self.size, generator=g) * 2 - 1,
                "labels": torch.tensor(i % self.labels)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--train-size", type=int, default=2560)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=5e-3)
    args = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = ViTForImageClassification(ViTConfig(image_size=args.image_size, num_hidden_layers=args.layers, num_labels=101))
    config = LoraConfig(r=args.rank, lora_alpha=16, target_modules=["q_proj", "v_proj"], lora_dropout=0.1, bias="none",
                        modules_to_save=["classifier"])
    model = get_peft_model(model, config)
    model.print_trainable_parameters()
    model.to(device)

    train_loader = DataLoader(Food(args.train_size, args.image_size, 101), batch_size=args.batch_size, shuffle=True, num_workers=4)
    eval_loader = DataLoader(Food(args.train_size // 8, args.image_size, 101), batch_size=args.batch_size * 2, num_workers=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scaler = torch.amp.GradScaler()
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for batch in train_loader:
            batch = {k: v.to(device) for k, v in batch.items()}
            with torch.autocast(device_type="cuda", dtype=torch.float16):
                loss = model(**batch).loss
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            total += loss.item()
        model.eval()
        correct = 0
        for batch in eval_loader:
            with torch.no_grad():
                logits = model(pixel_values=batch["pixel_values"].to(device)).logits
            correct += (logits.argmax(-1).cpu() == batch["labels"]).sum().item()
        print(f"epoch {epoch}: train loss {total / len(train_loader):.4f}, eval acc {correct / len(eval_loader.dataset):.4f}")

    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
