"""Fine-tune a BERT-base sized classifier on news topics with the Hugging Face Trainer."""
import argparse
import tempfile

import numpy as np
import torch
from sklearn.metrics import accuracy_score, f1_score
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed


class NewsDataset(Dataset):
    def __init__(self, n, max_length, vocab_size, num_labels, seed):
        rng = np.random.default_rng(seed)
        lens = np.clip(rng.lognormal(4.7, 0.6, n), 12, max_length).astype(int)
        self.ids = [np.concatenate([[101], rng.integers(999, vocab_size, l - 2), [102]]) for l in lens]
        self.labels = rng.integers(0, num_labels, n)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": int(self.labels[i])}


def collate_fn(features):
    ids = [torch.as_tensor(f["input_ids"], dtype=torch.long) for f in features]
    input_ids = pad_sequence(ids, batch_first=True, padding_value=0)
    return {
        "input_ids": input_ids,
        "attention_mask": (input_ids != 0).long(),
        "labels": torch.tensor([f["labels"] for f in features]),
    }


def compute_metrics(p):
    preds = np.argmax(p.predictions, axis=1)
    return {"accuracy": accuracy_score(p.label_ids, preds), "f1": f1_score(p.label_ids, preds, average="macro")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--max-length", type=int, default=384)
    parser.add_argument("--train-size", type=int, default=5000)
    parser.add_argument("--hidden-size", type=int, default=768)
    parser.add_argument("--num-layers", type=int, default=12)
    parser.add_argument("--epochs", type=float, default=2)
    args = parser.parse_args()

    set_seed(13)
    config = BertConfig(hidden_size=args.hidden_size, num_hidden_layers=args.num_layers,
                        intermediate_size=4 * args.hidden_size, num_labels=20)
    model = BertForSequenceClassification(config)
    train_ds = NewsDataset(args.train_size, args.max_length, config.vocab_size, 20, 0)
    eval_ds = NewsDataset(args.train_size // 8, args.max_length, config.vocab_size, 20, 1)

    with tempfile.TemporaryDirectory() as out:
        training_args = TrainingArguments(
            output_dir=out,
            num_train_epochs=args.epochs,
            per_device_train_batch_size=args.batch_size,
            per_device_eval_batch_size=64,
            learning_rate=3e-5,
            weight_decay=0.01,
            warmup_steps=30,
            eval_strategy="epoch",
            save_strategy="no",
            logging_steps=50,
            bf16=torch.cuda.is_available(),
            dataloader_num_workers=2,
            report_to="none",
        )
        trainer = Trainer(model=model, args=training_args, train_dataset=train_ds, eval_dataset=eval_ds,
                          data_collator=collate_fn, compute_metrics=compute_metrics)
        trainer.train()
        print(trainer.evaluate())


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
