"""ALBERT-base paraphrase detection (MRPC-like) with the Hugging Face Trainer, fp16."""
import tempfile

import numpy as np
import torch
from sklearn.metrics import accuracy_score, f1_score
from torch.utils.data import Dataset
from transformers import (AlbertConfig, AlbertForSequenceClassification, EarlyStoppingCallback, Trainer,
                          TrainingArguments, set_seed)

MAX_LEN = 128
VOCAB = 30000
N_TRAIN = 1024
N_EVAL = 256
BATCH = 32
FP16 = True


class PairDataset(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.examples = []
        for _ in range(n):
            la = int(torch.randint(10, MAX_LEN // 2 - 3, (1,), generator=g))
            lb = int(torch.randint(10, MAX_LEN // 2 - 3, (1,), generator=g))
            a = torch.randint(5, VOCAB, (la,), generator=g).tolist()
            b = torch.randint(5, VOCAB, (lb,), generator=g).tolist()
            ids = [2] + a + [3] + b + [3]
            types = [0] * (la + 2) + [1] * (lb + 1)
            pad = MAX_LEN - len(ids)
            self.examples.append({
                "input_ids": ids + [0] * pad,
                "token_type_ids": types + [0] * pad,
                "attention_mask": [1] * len(ids) + [0] * pad,
                "labels": int(torch.randint(0, 2, (1,), generator=g)),
            })

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, i):
        return self.examples[i]


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    preds = np.argmax(logits, axis=-1)
    return {"accuracy": accuracy_score(labels, preds), "f1": f1_score(labels, preds)}


def main():
    set_seed(2024)
    config = AlbertConfig(vocab_size=VOCAB, embedding_size=128, hidden_size=768, num_hidden_layers=12,
                          num_attention_heads=12, intermediate_size=3072, num_labels=2,
                          classifier_dropout_prob=0.1)
    model = AlbertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out,
            num_train_epochs=3,
            per_device_train_batch_size=BATCH,
            per_device_eval_batch_size=2 * BATCH,
            learning_rate=2e-5,
            weight_decay=0.01,
            warmup_steps=10,
            fp16=FP16,
            eval_strategy="epoch",
            save_strategy="epoch",
            save_total_limit=2,
            load_best_model_at_end=True,
            metric_for_best_model="accuracy",
            logging_steps=10,
            report_to="none",
            seed=2024,
        )
        trainer = Trainer(model=model, args=args, train_dataset=PairDataset(N_TRAIN, 0),
                          eval_dataset=PairDataset(N_EVAL, 1), compute_metrics=compute_metrics,
                          callbacks=[EarlyStoppingCallback(early_stopping_patience=3)])
        trainer.train()
        print(trainer.evaluate())
        preds = trainer.predict(PairDataset(N_EVAL // 2, 2))
        print(preds.metrics)
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
