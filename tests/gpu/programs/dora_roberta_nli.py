"""DoRA adapters on RoBERTa-base for NLI through the Trainer."""
import tempfile

import numpy as np
import torch
from datasets import Dataset
from peft import LoraConfig, TaskType, get_peft_model
from transformers import RobertaConfig, RobertaForSequenceClassification, Trainer, TrainingArguments

BATCH_SIZE = 32
MAX_LEN = 160
N_TRAIN = 3200
N_VAL = 640


def make_split(n, seed):
    rng = np.random.default_rng(seed)
    ids, masks = [], []
    for _ in range(n):
        length = int(rng.integers(24, MAX_LEN + 1))
        row = np.ones(MAX_LEN, dtype=np.int64)
        row[:length] = rng.integers(4, 50000, length)
        row[0], row[length - 1] = 0, 2
        ids.append(row.tolist())
        masks.append([1] * length + [0] * (MAX_LEN - length))
    labels = rng.integers(0, 3, n).tolist()
    return Dataset.from_dict({"input_ids": ids, "attention_mask": masks, "labels": labels}).with_format("torch")


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    return {"accuracy": float((logits.argmax(-1) == labels).mean())}


train_ds, val_ds = make_split(N_TRAIN, 0), make_split(N_VAL, 1)

base = RobertaForSequenceClassification(RobertaConfig(
    vocab_size=50265, max_position_embeddings=514, type_vocab_size=1, pad_token_id=1, num_labels=3))
model = get_peft_model(base, LoraConfig(
    task_type=TaskType.SEQ_CLS,
    r=8,
    lora_alpha=16,
    lora_dropout=0.1,
    use_dora=True,
    target_modules=["query", "key", "value", "dense"],
    modules_to_save=["classifier"],
    exclude_modules=r".*classifier.*",
))
model.print_trainable_parameters()

out_dir = tempfile.mkdtemp()
trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir=out_dir,
        learning_rate=4e-4,
        per_device_train_batch_size=BATCH_SIZE,
        per_device_eval_batch_size=BATCH_SIZE * 2,
        num_train_epochs=2,
        weight_decay=0.01,
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=25,
        label_names=["labels"],
        report_to="none",
    ),
    train_dataset=train_ds,
    eval_dataset=val_ds,
    compute_metrics=compute_metrics,
)
trainer.train()

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
