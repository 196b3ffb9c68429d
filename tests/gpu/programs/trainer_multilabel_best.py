# SPDX-License-Identifier: Apache-2.0
"""Emotion tagging (28 labels at once) with the Trainer: per-epoch evaluation, micro F1 by sklearn, best model loaded at the end."""
import argparse
import os
import tempfile

import numpy as np
import torch
from sklearn.metrics import f1_score, roc_auc_score
from transformers import DistilBertConfig, DistilBertForSequenceClassification, EarlyStoppingCallback, Trainer, TrainingArguments, set_seed

SMALL = os.environ.get("SMALL") == "1"
LABELS = 28
VOCAB = 1000 if SMALL else 30522
MAXLEN = 32 if SMALL else 192


class Comments(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.items = []
        for _ in range(n):
            length = int(rng.integers(MAXLEN // 3, MAXLEN + 1))
            self.items.append({"input_ids": rng.integers(5, VOCAB, length).tolist(), "labels": (rng.random(LABELS) < 0.15).astype("float32")})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(features):
    longest = max(len(f["input_ids"]) for f in features)
    longest = (longest + 7) // 8 * 8
    ids = torch.zeros(len(features), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for r, f in enumerate(features):
        ids[r, : len(f["input_ids"])] = torch.tensor(f["input_ids"])
        mask[r, : len(f["input_ids"])] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor(np.stack([f["labels"] for f in features]))}


def compute_metrics(pred):
    probs = 1 / (1 + np.exp(-pred.predictions))
    y = pred.label_ids
    return {"f1_micro": f1_score(y, probs > 0.5, average="micro", zero_division=0), "f1_macro": f1_score(y, probs > 0.5, average="macro", zero_division=0), "auc": roc_auc_score(y, probs, average="micro")}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()
    set_seed(7)
    if SMALL:
        args.batch_size = min(args.batch_size, 8)
    cuda = torch.cuda.is_available()
    config = DistilBertConfig(vocab_size=VOCAB, dim=64 if SMALL else 768, hidden_dim=128 if SMALL else 3072, n_layers=2 if SMALL else 6, n_heads=4 if SMALL else 12,
                              num_labels=LABELS, problem_type="multi_label_classification")
    model = DistilBertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as out:
        targs = TrainingArguments(
            output_dir=out, num_train_epochs=2, per_device_train_batch_size=args.batch_size, per_device_eval_batch_size=args.batch_size * 2,
            learning_rate=5e-5, weight_decay=0.01, warmup_steps=2, fp16=cuda, eval_strategy="epoch", save_strategy="epoch", save_total_limit=1, save_only_model=True,
            load_best_model_at_end=True, metric_for_best_model="f1_micro", greater_is_better=True, logging_strategy="epoch", report_to="none",
        )
        trainer = Trainer(model=model, args=targs, train_dataset=Comments(args.batch_size * 7, 0), eval_dataset=Comments(32 if SMALL else 1000, 1), data_collator=collate,
                          compute_metrics=compute_metrics, callbacks=[EarlyStoppingCallback(early_stopping_patience=2)])
        trainer.train()
        print(trainer.evaluate())
    if cuda:
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
