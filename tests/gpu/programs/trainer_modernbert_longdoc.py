"""ModernBERT long-document classification (4096 tokens) with the Hugging Face Trainer, bf16."""
import tempfile

import numpy as np
import torch
from sklearn.metrics import accuracy_score, f1_score
from torch.utils.data import Dataset
from transformers import ModernBertConfig, ModernBertForSequenceClassification, Trainer, TrainingArguments, set_seed

MAX_LEN = 4096
VOCAB = 50368
NUM_LABELS = 6
N_TRAIN = 128
N_EVAL = 32
HIDDEN = 768
LAYERS = 12


class LongDocs(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.docs = [rng.integers(10, VOCAB - 10, size=rng.integers(MAX_LEN // 4, MAX_LEN + 1)) for _ in range(n)]
        self.labels = rng.integers(0, NUM_LABELS, size=n)

    def __len__(self):
        return len(self.docs)

    def __getitem__(self, i):
        return {"input_ids": self.docs[i], "label": int(self.labels[i])}


def data_collator(features):
    longest = max(len(f["input_ids"]) for f in features)
    ids = torch.zeros(len(features), longest, dtype=torch.long)
    mask = torch.zeros(len(features), longest, dtype=torch.long)
    for i, f in enumerate(features):
        n = len(f["input_ids"])
        ids[i, :n] = torch.from_numpy(f["input_ids"])
        mask[i, :n] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([f["label"] for f in features])}


def compute_metrics(pred):
    preds = pred.predictions.argmax(-1)
    return {"accuracy": accuracy_score(pred.label_ids, preds),
            "f1": f1_score(pred.label_ids, preds, average="macro")}


def main():
    set_seed(42)
    config = ModernBertConfig(
        vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=1152, num_hidden_layers=LAYERS,
        num_attention_heads=12, max_position_embeddings=8192, num_labels=NUM_LABELS, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2,
    )
    model = ModernBertForSequenceClassification._from_config(config, attn_implementation="sdpa")
    print(f"{model.num_parameters() / 1e6:.1f}M parameters")

    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out,
            num_train_epochs=2,
            per_device_train_batch_size=4,
            per_device_eval_batch_size=4,
            gradient_accumulation_steps=2,
            learning_rate=5e-5,
            weight_decay=0.01,
            warmup_steps=3,
            bf16=True,
            logging_steps=5,
            eval_strategy="epoch",
            save_strategy="epoch",
            save_total_limit=1,
            load_best_model_at_end=True,
            metric_for_best_model="f1",
            report_to="none",
        )
        trainer = Trainer(
            model=model, args=args, train_dataset=LongDocs(N_TRAIN, 0), eval_dataset=LongDocs(N_EVAL, 1),
            data_collator=data_collator, compute_metrics=compute_metrics,
        )
        trainer.train()
        print(trainer.evaluate())

    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
