# SPDX-License-Identifier: Apache-2.0
"""Translation with Seq2SeqTrainer: T5 from scratch, Adafactor, beam search in every evaluation (predict_with_generate)."""
import argparse
import os
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, T5Config, T5ForConditionalGeneration

SMALL = os.environ.get("SMALL") == "1"
PAD = 0


class Sentences(Dataset):
    def __init__(self, n, longest, vocab):
        rng = np.random.default_rng(n)
        self.pairs = [(rng.integers(3, vocab, rng.integers(longest // 2, longest)), rng.integers(3, vocab, rng.integers(longest // 2, longest))) for _ in range(n)]

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        s, t = self.pairs[i]
        return {"input_ids": torch.tensor(s), "labels": torch.tensor(t)}


class Collator:
    """Like DataCollatorForSeq2Seq, without a tokenizer. Label smoothing needs decoder_input_ids from here."""

    def __init__(self, model):
        self.model = model

    def __call__(self, features):
        ids = torch.nn.utils.rnn.pad_sequence([f["input_ids"] for f in features], True, PAD)
        labels = torch.nn.utils.rnn.pad_sequence([f["labels"] for f in features], True, -100)
        decoder = self.model.prepare_decoder_input_ids_from_labels(labels=labels)
        return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": labels, "decoder_input_ids": decoder}


def metrics(p):
    preds = p.predictions[0] if isinstance(p.predictions, tuple) else p.predictions
    preds = np.where(preds != -100, preds, PAD)
    labels = np.where(p.label_ids != -100, p.label_ids, PAD)
    n = min(preds.shape[1], labels.shape[1])
    return {"token_match": float((preds[:, :n] == labels[:, :n]).mean()), "gen_len": float((preds != PAD).sum(1).mean())}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=32)
    a = ap.parse_args()
    torch.manual_seed(3)
    if SMALL:
        a.batch_size = 4
    vocab, longest = (300, 16) if SMALL else (32128, 128)
    model = T5ForConditionalGeneration(T5Config(vocab_size=vocab, d_model=64 if SMALL else 512, d_kv=16 if SMALL else 64, d_ff=128 if SMALL else 2048, num_layers=2 if SMALL else 6,
                                                num_heads=4 if SMALL else 8, decoder_start_token_id=PAD, pad_token_id=PAD, eos_token_id=1))
    targs = Seq2SeqTrainingArguments(
        output_dir=tempfile.mkdtemp(), num_train_epochs=2, per_device_train_batch_size=a.batch_size, per_device_eval_batch_size=a.batch_size, eval_strategy="epoch", save_strategy="no",
        optim="adafactor", learning_rate=1e-3, lr_scheduler_type="constant", label_smoothing_factor=0.1, predict_with_generate=True, generation_max_length=20, generation_num_beams=2,
        logging_steps=5, report_to=[],
    )
    trainer = Seq2SeqTrainer(model=model, args=targs, train_dataset=Sentences(a.batch_size * 6, longest, vocab), eval_dataset=Sentences(a.batch_size * 3, longest, vocab), data_collator=Collator(model), compute_metrics=metrics)
    trainer.train()
    print(trainer.state.log_history[-2:])


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
