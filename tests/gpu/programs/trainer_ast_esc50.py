"""Fine-tune an Audio Spectrogram Transformer with the Hugging Face Trainer (ESC-50 style, synthetic clips)."""
import tempfile

import numpy as np
import torch
from sklearn.metrics import accuracy_score, f1_score
from torch.utils.data import Dataset
from transformers import ASTConfig, ASTForAudioClassification, Trainer, TrainingArguments, set_seed

NUM_LABELS = 50
MAX_LENGTH = 1024
MEL = 128
N_TRAIN, N_EVAL = 240, 60
LAYERS = 12

set_seed(42)


class Spectrograms(Dataset):
    """Fbank-like features: a harmonic stack per label with time and frequency masking when training."""

    def __init__(self, n, train, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, NUM_LABELS, n)
        self.train, self.seed = train, seed

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        rng = np.random.default_rng(self.seed * 7919 + i)
        x = rng.standard_normal((MAX_LENGTH, MEL), dtype=np.float32) * 0.3
        y = int(self.labels[i])
        x[:, y % MEL::16] += 1.0
        n = int(rng.integers(MAX_LENGTH // 3, MAX_LENGTH))
        x[n:] = 0.0
        if self.train:
            t, f = rng.integers(0, MAX_LENGTH - 96), rng.integers(0, MEL - 24)
            x[t:t + 96] = 0.0
            x[:, f:f + 24] = 0.0
        return {"input_values": torch.from_numpy(x), "labels": y}


def compute_metrics(p):
    preds = np.argmax(p.predictions, axis=1)
    return {"accuracy": accuracy_score(p.label_ids, preds), "f1": f1_score(p.label_ids, preds, average="macro")}


config = ASTConfig(num_labels=NUM_LABELS, num_hidden_layers=LAYERS, max_length=MAX_LENGTH, num_mel_bins=MEL,
                   label2id={f"class_{i}": i for i in range(NUM_LABELS)},
                   id2label={i: f"class_{i}" for i in range(NUM_LABELS)})
model = ASTForAudioClassification(config)

training_args = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    learning_rate=5e-5,
    num_train_epochs=2,
    per_device_train_batch_size=8,
    per_device_eval_batch_size=8,
    eval_strategy="epoch",
    save_strategy="epoch",
    save_total_limit=1,
    load_best_model_at_end=True,
    metric_for_best_model="accuracy",
    warmup_steps=5,
    logging_steps=10,
    fp16=True,
    dataloader_num_workers=1,
    report_to="none",
)
trainer = Trainer(model=model, args=training_args, train_dataset=Spectrograms(N_TRAIN, True, 1),
                  eval_dataset=Spectrograms(N_EVAL, False, 2), compute_metrics=compute_metrics)
trainer.train()
print(trainer.evaluate())
if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
