# SPDX-License-Identifier: Apache-2.0
"""Text classification with the HF Trainer: DeBERTa-v2, class-weighted loss in a Trainer subclass, bf16, dynamic padding, compute_metrics with macro F1."""
import argparse
import os
import tempfile

import numpy as np
import torch
from sklearn.metrics import accuracy_score, f1_score
from torch.nn.utils.rnn import pad_sequence
from transformers import DebertaV2Config, DebertaV2ForSequenceClassification, Trainer, TrainingArguments, set_seed

SMALL = os.environ.get("SMALL") == "1"


class Reviews(torch.utils.data.Dataset):
    def __init__(self, n, vocab, max_len, seed):
        rng = np.random.default_rng(seed)
        self.rows = []
        for _ in range(n):
            length = int(rng.integers(max_len // 2, max_len + 1))
            label = int(rng.choice(5, p=[0.5, 0.2, 0.15, 0.1, 0.05]))
            self.rows.append({"input_ids": rng.integers(3 + label, vocab, length).tolist(), "label": label})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(features):
    ids = [torch.tensor(f["input_ids"]) for f in features]
    return {
        "input_ids": pad_sequence(ids, batch_first=True),
        "attention_mask": pad_sequence([torch.ones_like(i) for i in ids], batch_first=True),
        "labels": torch.tensor([f["label"] for f in features]),
    }


class WeightedTrainer(Trainer):
    def __init__(self, *args, class_weights=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.class_weights = class_weights

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        weight = self.class_weights.to(outputs.logits.device)
        loss = torch.nn.functional.cross_entropy(outputs.logits.float(), labels, weight=weight)
        return (loss, {"loss": loss, "logits": outputs.logits}) if return_outputs else loss


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    pred = np.argmax(logits, axis=-1)
    return {"accuracy": accuracy_score(labels, pred), "macro_f1": f1_score(labels, pred, average="macro", zero_division=0)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    set_seed(13)
    if SMALL:
        args.batch_size = min(args.batch_size, 4)
    vocab, max_len = (300, 32) if SMALL else (60000, 256)
    config = DebertaV2Config(
        vocab_size=vocab, hidden_size=64 if SMALL else 768, num_hidden_layers=2 if SMALL else 8, num_attention_heads=4 if SMALL else 12,
        intermediate_size=128 if SMALL else 3072, num_labels=5, relative_attention=True, position_buckets=64 if SMALL else 256, norm_rel_ebd="layer_norm",
        share_att_key=True, pos_att_type=["p2c", "c2p"], position_biased_input=False, max_position_embeddings=512, type_vocab_size=0,
    )
    model = DebertaV2ForSequenceClassification(config)
    train = Reviews(args.batch_size * (2 if SMALL else 8), vocab, max_len, 0)
    dev = Reviews(args.batch_size * (2 if SMALL else 4) + 5, vocab, max_len, 1)
    counts = np.bincount([r["label"] for r in train.rows], minlength=5) + 1
    weights = torch.tensor(counts.sum() / (5 * counts), dtype=torch.float32)
    training_args = TrainingArguments(
        output_dir=tempfile.mkdtemp(), per_device_train_batch_size=args.batch_size, per_device_eval_batch_size=args.batch_size,
        num_train_epochs=args.epochs, learning_rate=2e-5, weight_decay=0.01, warmup_steps=2, lr_scheduler_type="cosine",
        eval_strategy="epoch", save_strategy="no", logging_steps=4, bf16=torch.cuda.is_available(), report_to=[], disable_tqdm=True,
    )
    trainer = WeightedTrainer(model=model, args=training_args, train_dataset=train, eval_dataset=dev, data_collator=collate, compute_metrics=compute_metrics, class_weights=weights)
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
