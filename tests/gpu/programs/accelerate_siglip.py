# SPDX-License-Identifier: Apache-2.0
"""SigLIP from scratch with accelerate: pairwise sigmoid loss, bf16; after each epoch zero-shot accuracy on a labelled set with class prompts."""
import argparse
import os

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset
from transformers import SiglipConfig, SiglipModel, SiglipTextConfig, SiglipVisionConfig, get_cosine_schedule_with_warmup

SMALL = os.environ.get("SMALL") == "1"


class ImageText(Dataset):
    def __init__(self, n, size, length, vocab):
        self.n, self.size, self.length, self.vocab = n, size, length, vocab

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return {"pixel_values": torch.randn(3, self.size, self.size, generator=g), "input_ids": torch.randint(2, self.vocab, (self.length,), generator=g)}


class Labelled(Dataset):
    def __init__(self, n, size, classes):
        self.n, self.size, self.classes = n, size, classes

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return {"pixel_values": torch.randn(3, self.size, self.size), "label": i % self.classes}


def features(out):
    return out if torch.is_tensor(out) else out.pooler_output


def sigmoid_loss(img, txt, scale, bias):
    logits = txt @ img.t() * scale.exp() + bias
    sign = 2 * torch.eye(len(logits), device=logits.device) - 1
    return -F.logsigmoid(sign * logits).sum(-1).mean()


@torch.no_grad()
def zero_shot(accelerator, model, loader, prompts):
    model.eval()
    inner = accelerator.unwrap_model(model)
    with accelerator.autocast():
        classes = F.normalize(features(inner.get_text_features(input_ids=prompts)).float(), dim=-1)
    correct = total = 0
    for batch in loader:
        with accelerator.autocast():
            img = F.normalize(features(inner.get_image_features(pixel_values=batch["pixel_values"])).float(), dim=-1)
        pred = (img @ classes.t()).argmax(-1)
        pred, label = accelerator.gather_for_metrics((pred, batch["label"]))
        correct += (pred == label).sum().item()
        total += len(label)
    return correct / total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=96)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--lr", type=float, default=5e-4)
    args = p.parse_args()
    accelerator = Accelerator(mixed_precision="bf16" if torch.cuda.is_available() else "no")
    set_seed(0)
    if SMALL:
        args.batch_size = min(args.batch_size, 4)
    size, length, vocab, classes = (32, 8, 100, 5) if SMALL else (224, 64, 32000, 100)
    vision = SiglipVisionConfig(image_size=size, patch_size=16, hidden_size=64 if SMALL else 512, intermediate_size=128 if SMALL else 2048, num_hidden_layers=2 if SMALL else 12, num_attention_heads=4 if SMALL else 8)
    text = SiglipTextConfig(vocab_size=vocab, max_position_embeddings=length, hidden_size=64 if SMALL else 512, intermediate_size=128 if SMALL else 2048, num_hidden_layers=2 if SMALL else 8, num_attention_heads=4 if SMALL else 8, projection_size=64 if SMALL else 512)
    model = SiglipModel(SiglipConfig(text_config=text.to_dict(), vision_config=vision.to_dict()))
    no_decay = [q for q in model.parameters() if q.ndim < 2]
    decay = [q for q in model.parameters() if q.ndim >= 2]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}], lr=args.lr, betas=(0.9, 0.95))
    workers = 0 if SMALL else 8
    train = DataLoader(ImageText(args.batch_size * (2 if SMALL else 8), size, length, vocab), args.batch_size, shuffle=True, drop_last=True, num_workers=workers)
    val = DataLoader(Labelled(args.batch_size * 4 + 7, size, classes), args.batch_size, num_workers=workers)
    scheduler = get_cosine_schedule_with_warmup(optimizer, 2, args.epochs * len(train))
    model, optimizer, train, val, scheduler = accelerator.prepare(model, optimizer, train, val, scheduler)
    prompts = torch.randint(2, vocab, (classes, length), device=accelerator.device)
    for epoch in range(args.epochs):
        model.train()
        for step, batch in enumerate(train):
            out = model(input_ids=batch["input_ids"], pixel_values=batch["pixel_values"])
            inner = accelerator.unwrap_model(model)
            loss = sigmoid_loss(out.image_embeds.float(), out.text_embeds.float(), inner.logit_scale, inner.logit_bias)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        accelerator.print(f"epoch {epoch}: loss {loss.item():.4f}, zero-shot top-1 {zero_shot(accelerator, model, val, prompts):.4f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
