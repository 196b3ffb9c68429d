# SPDX-License-Identifier: Apache-2.0
"""SegFormer fine-tuning with the Trainer as in the blog post: whole logits kept during evaluation, moved to the CPU every two steps."""
import argparse
import os
import tempfile

import numpy as np
import torch
from torch import nn
from transformers import SegformerConfig, SegformerForSemanticSegmentation, Trainer, TrainingArguments

SMALL = os.environ.get("SMALL") == "1"
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=12)
parser.add_argument("--lr", type=float, default=6e-5)
args = parser.parse_args()
torch.manual_seed(0)

NUM_LABELS = 10 if SMALL else 120
SIZE = 64 if SMALL else 512
if SMALL:
    args.batch_size = 2


class Scenes(torch.utils.data.Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        labels = torch.randint(0, NUM_LABELS, (SIZE // 32, SIZE // 32), generator=g).repeat_interleave(32, 0).repeat_interleave(32, 1)
        pixels = labels[None].float().div(NUM_LABELS).expand(3, -1, -1) + 0.1 * torch.randn(3, SIZE, SIZE, generator=g)
        return {"pixel_values": pixels, "labels": labels}


def compute_metrics(eval_pred):
    with torch.no_grad():
        logits, labels = eval_pred
        inter, union = np.zeros(NUM_LABELS), np.zeros(NUM_LABELS)
        for l, y in zip(logits, labels):
            up = nn.functional.interpolate(torch.from_numpy(l)[None], size=y.shape[-2:], mode="bilinear", align_corners=False).argmax(1)[0].numpy()
            both = np.bincount(y[up == y].ravel(), minlength=NUM_LABELS)
            inter += both
            union += np.bincount(y.ravel(), minlength=NUM_LABELS) + np.bincount(up.ravel(), minlength=NUM_LABELS) - both
        return {"mean_iou": float((inter / np.maximum(union, 1)).mean()), "accuracy": float(inter.sum() / labels.size)}


config = SegformerConfig(num_labels=NUM_LABELS, depths=[1, 1, 1, 1] if SMALL else [3, 4, 6, 3], hidden_sizes=[16, 32, 64, 96] if SMALL else [64, 128, 320, 512],
                         num_attention_heads=[1, 2, 4, 4] if SMALL else [1, 2, 5, 8], decoder_hidden_size=32 if SMALL else 512)
model = SegformerForSemanticSegmentation(config)
training_args = TrainingArguments(
    output_dir=tempfile.mkdtemp(), learning_rate=args.lr, num_train_epochs=2, per_device_train_batch_size=args.batch_size, per_device_eval_batch_size=args.batch_size,
    eval_strategy="epoch", save_strategy="no", eval_accumulation_steps=2, logging_steps=1, remove_unused_columns=False, report_to=[], dataloader_num_workers=0 if SMALL else 4,
)
trainer = Trainer(model=model, args=training_args, train_dataset=Scenes(args.batch_size * 5), eval_dataset=Scenes(4 if SMALL else 26), compute_metrics=compute_metrics)
trainer.train()

if torch.cuda.is_available():
    s = torch.cuda.memory_stats()
    print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
