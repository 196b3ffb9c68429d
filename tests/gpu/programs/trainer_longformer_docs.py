"""Long document classification with Longformer (4096 tokens), Trainer, fp16 and gradient checkpointing."""
import tempfile

import numpy as np
import torch
from sklearn.metrics import accuracy_score, precision_recall_fscore_support
from torch.utils.data import Dataset
from transformers import LongformerConfig, LongformerForSequenceClassification, Trainer, TrainingArguments, set_seed

MAX_LEN = 4096
VOCAB = 50265
LAYERS, HIDDEN, WINDOW = 8, 512, 512
N_TRAIN, N_TEST = 128, 24
EPOCHS = 2

set_seed(2)


class Reviews(Dataset):
    """Tokenized with padding='max_length'; documents have 800 to 4096 tokens."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 2, n)
        self.ids = np.full((n, MAX_LEN), 1, dtype=np.int64)
        self.mask = np.zeros((n, MAX_LEN), dtype=np.int64)
        for i in range(n):
            k = int(rng.integers(MAX_LEN // 5, MAX_LEN + 1))
            body = rng.integers(10, VOCAB - 1, k)
            body[:: 50] = 100 + self.labels[i]
            body[0], body[-1] = 0, 2
            self.ids[i, :k] = body
            self.mask[i, :k] = 1

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": torch.from_numpy(self.ids[i]), "attention_mask": torch.from_numpy(self.mask[i]),
                "labels": int(self.labels[i])}


def compute_metrics(pred):
    labels = pred.label_ids
    preds = pred.predictions.argmax(-1)
    precision, recall, f1, _ = precision_recall_fscore_support(labels, preds, average='binary', zero_division=0)
    return {'accuracy': accuracy_score(labels, preds), 'f1': f1, 'precision': precision, 'recall': recall}


config = LongformerConfig(vocab_size=VOCAB, attention_window=WINDOW, max_position_embeddings=MAX_LEN + 2, hidden_size=HIDDEN,
                          num_hidden_layers=LAYERS, num_attention_heads=8, intermediate_size=HIDDEN * 4, type_vocab_size=1,
                          num_labels=2, pad_token_id=1, bos_token_id=0, eos_token_id=2, sep_token_id=2)
model = LongformerForSequenceClassification(config)

training_args = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    num_train_epochs=EPOCHS,
    per_device_train_batch_size=4,
    gradient_accumulation_steps=2,
    per_device_eval_batch_size=8,
    eval_strategy="epoch",
    save_strategy="epoch",
    load_best_model_at_end=True,
    gradient_checkpointing=True,
    disable_tqdm=False,
    warmup_steps=5,
    weight_decay=0.01,
    logging_steps=4,
    fp16=True,
    report_to="none",
)
trainer = Trainer(model=model, args=training_args, compute_metrics=compute_metrics, train_dataset=Reviews(N_TRAIN, 0),
                  eval_dataset=Reviews(N_TEST, 1))
trainer.train()
print(trainer.evaluate())
if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
