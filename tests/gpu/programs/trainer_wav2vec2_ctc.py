# wav2vec2-base CTC fine-tuning, in the manner of the well known TIMIT notebook
import argparse
import tempfile
from dataclasses import dataclass

import numpy as np
import torch
from transformers import Trainer, TrainingArguments, Wav2Vec2Config, Wav2Vec2ForCTC

VOCAB = 32
PAD = 0


class SpeechDataset(torch.utils.data.Dataset):
    def __init__(self, n, min_s, max_s, seed):
        rng = np.random.default_rng(seed)
        self.seconds = rng.uniform(min_s, max_s, n)
        self.seed = seed

    def __len__(self):
        return len(self.seconds)

    def __getitem__(self, i):
        rng = np.random.default_rng(self.seed * 100003 + i)
        n = int(self.seconds[i] * 16000)
        wav = rng.standard_normal(n).astype(np.float32)
        labels = rng.integers(1, VOCAB, max(2, int(self.seconds[i] * 12)))
        return {"input_values": wav, "labels": labels}


@dataclass
class DataCollatorCTCWithPadding:
    def __call__(self, features):
        longest = max(len(f["input_values"]) for f in features)
        labels_longest = max(len(f["labels"]) for f in features)
        x = torch.zeros(len(features), longest)
        y = torch.full((len(features), labels_longest), -100, dtype=torch.long)
        for i, f in enumerate(features):
            x[i, : len(f["input_values"])] = torch.from_numpy(f["input_values"])
            y[i, : len(f["labels"])] = torch.from_numpy(f["labels"])
        return {"input_values": x, "labels": y}


def edit_distance(a, b):
    d = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        prev, d[0] = d[0], i
        for j, y in enumerate(b, 1):
            prev, d[j] = d[j], min(d[j] + 1, d[j - 1] + 1, prev + (x != y))
    return d[-1]


def preprocess_logits(logits, labels):
    return logits.argmax(-1)


def compute_metrics(pred):
    errors, total = 0, 0
    for p, l in zip(pred.predictions, pred.label_ids):
        p = [int(t) for k, t in enumerate(p) if t > 0 and (k == 0 or t != p[k - 1])]
        l = [int(t) for t in l if t != -100]
        errors += edit_distance(p, l)
        total += len(l)
    return {"cer": errors / total}


parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--train-clips", type=int, default=480)
parser.add_argument("--max-seconds", type=float, default=12.0)
parser.add_argument("--layers", type=int, default=12)
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()

config = Wav2Vec2Config(
    vocab_size=VOCAB,
    num_hidden_layers=args.layers,
    pad_token_id=PAD,
    ctc_loss_reduction="mean",
    ctc_zero_infinity=True,
    layerdrop=0.0,
    mask_time_prob=0.05,
)
model = Wav2Vec2ForCTC(config)
model.freeze_feature_encoder()

train = SpeechDataset(args.train_clips, 2.0, args.max_seconds, 1)
dev = SpeechDataset(args.train_clips // 8, 2.0, args.max_seconds, 2)
with tempfile.TemporaryDirectory() as tmp:
    trainer = Trainer(
        model=model,
        data_collator=DataCollatorCTCWithPadding(),
        args=TrainingArguments(
            output_dir=tmp,
            per_device_train_batch_size=args.batch_size,
            per_device_eval_batch_size=args.batch_size,
            gradient_accumulation_steps=2,
            eval_strategy="epoch",
            save_strategy="no",
            num_train_epochs=args.epochs,
            fp16=True,
            learning_rate=1e-4,
            weight_decay=0.005,
            warmup_steps=20,
            logging_steps=10,
            dataloader_num_workers=4,
            report_to="none",
        ),
        compute_metrics=compute_metrics,
        preprocess_logits_for_metrics=preprocess_logits,
        train_dataset=train,
        eval_dataset=dev,
    )
    trainer.train()

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
