# SPDX-License-Identifier: Apache-2.0
"""Masked language model with the Trainer: logits reduced to argmax by preprocess_logits_for_metrics, evaluation every few steps, bf16."""
import argparse
import math
import os
import tempfile
from dataclasses import dataclass

import torch
from torch.utils.data import Dataset
from transformers import RobertaConfig, RobertaForMaskedLM, Trainer, TrainingArguments

SMALL = os.environ.get("SMALL") == "1"


class Blocks(Dataset):
    """Texts joined and cut into blocks of the same length."""

    def __init__(self, n, length, vocab):
        self.ids = torch.randint(5, vocab, (n, length), generator=torch.Generator().manual_seed(n))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i]}


@dataclass
class MaskingCollator:
    vocab: int
    mask_id: int = 4
    probability: float = 0.15

    def __call__(self, features):
        ids = torch.stack([f["input_ids"] for f in features])
        labels = ids.clone()
        chosen = torch.bernoulli(torch.full(ids.shape, self.probability)).bool()
        labels[~chosen] = -100
        ids[chosen & (torch.rand(ids.shape) < 0.8)] = self.mask_id
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


def preprocess_logits_for_metrics(logits, labels):
    if isinstance(logits, tuple):
        logits = logits[0]
    return logits.argmax(dim=-1)


def compute_metrics(eval_preds):
    preds, labels = eval_preds
    keep = labels != -100
    return {"accuracy": float((preds[keep] == labels[keep]).mean())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=24)
    args = parser.parse_args()
    torch.manual_seed(0)
    vocab, length = (400, 32) if SMALL else (50265, 256)
    config = RobertaConfig(vocab_size=vocab, max_position_embeddings=length + 2, hidden_size=64 if SMALL else 768, num_hidden_layers=2 if SMALL else 8,
                           num_attention_heads=4 if SMALL else 12, intermediate_size=128 if SMALL else 3072, type_vocab_size=1, pad_token_id=1)
    model = RobertaForMaskedLM(config)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f}M parameters")
    if SMALL:
        args.batch_size = 4
    training_args = TrainingArguments(
        output_dir=tempfile.mkdtemp(), per_device_train_batch_size=args.batch_size, per_device_eval_batch_size=args.batch_size, max_steps=12, eval_strategy="steps", eval_steps=4,
        eval_on_start=False, bf16=torch.cuda.is_available(), learning_rate=1e-4, lr_scheduler_type="cosine", adam_beta2=0.98, max_grad_norm=0.5, save_strategy="no", logging_steps=4,
        report_to=[], optim="adamw_torch",
    )
    trainer = Trainer(model=model, args=training_args, train_dataset=Blocks(args.batch_size * 6, length, vocab), eval_dataset=Blocks(args.batch_size * 5 + 3, length, vocab),
                      data_collator=MaskingCollator(vocab), compute_metrics=compute_metrics, preprocess_logits_for_metrics=preprocess_logits_for_metrics)
    trainer.train()
    metrics = trainer.evaluate()
    metrics["perplexity"] = math.exp(metrics["eval_loss"])
    trainer.log_metrics("eval", metrics)


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
