# SPDX-License-Identifier: Apache-2.0
"""Named-entity tagging with the Hugging Face Trainer."""
import argparse
import os
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import RobertaPreLayerNormConfig, RobertaPreLayerNormForTokenClassification, Trainer, TrainingArguments

SMALL = os.environ.get("SMALL") == "1"
torch.manual_seed(0)


class Tagged(Dataset):
    def __init__(self, n, length, vocab):
        rng = np.random.default_rng(0)
        self.ids = rng.integers(5, vocab, (n, length))
        self.tags = rng.integers(0, 9, (n, length))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": torch.tensor(self.ids[i]), "attention_mask": torch.ones(len(self.ids[i]), dtype=torch.long), "labels": torch.tensor(self.tags[i])}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--lr", type=float, default=3e-5)
    args = parser.parse_args()

    length = 32 if SMALL else 224
    config = RobertaPreLayerNormConfig(vocab_size=40000, hidden_size=768, num_hidden_layers=2 if SMALL else 12, num_attention_heads=12, intermediate_size=3072, num_labels=9, max_position_embeddings=514)
    model = RobertaPreLayerNormForTokenClassification(config)
    train, valid = Tagged(args.batch_size * 5, length, 40000), Tagged(args.batch_size * 4, length, 40000)
    training_args = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        per_device_train_batch_size=args.batch_size,
        per_device_eval_batch_size=args.batch_size * 2,
        num_train_epochs=1,
        learning_rate=args.lr,
        weight_decay=0.01,
        bf16=torch.cuda.is_available(),
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=1,
        dataloader_num_workers=2,
        report_to=[],
    )

    def compute_metrics(p):
        return {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())}

    trainer = Trainer(model=model, args=training_args, train_dataset=train, eval_dataset=valid, compute_metrics=compute_metrics)
    trainer.train()


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
