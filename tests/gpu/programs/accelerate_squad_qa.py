#!/usr/bin/env python
# SPDX-License-Identifier: Apache-2.0
"""Extractive question answering with accelerate (no Trainer): accumulation, fp16, start and end logits gathered for the metric."""
import argparse
import collections
import math
import os

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.logging import get_logger
from torch.utils.data import DataLoader, Dataset
from transformers import ElectraConfig, ElectraForQuestionAnswering, get_scheduler

logger = get_logger(__name__)
SMALL = os.environ.get("SMALL") == "1"


class Features(Dataset):
    """Contexts cut into overlapping windows: several features belong to one example."""

    def __init__(self, n, length, vocab, labels):
        g = torch.Generator().manual_seed(n)
        self.ids = torch.randint(5, vocab, (n, length), generator=g)
        self.types = (torch.arange(length) > length // 8).long()
        self.start = torch.randint(length // 8, length - 10, (n,), generator=g)
        self.end = self.start + torch.randint(0, 10, (n,), generator=g)
        self.labels = labels

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        item = {"input_ids": self.ids[i], "attention_mask": torch.ones_like(self.ids[i]), "token_type_ids": self.types}
        if self.labels:
            item.update(start_positions=self.start[i], end_positions=self.end[i])
        return item


def postprocess(start_logits, end_logits, per_example=2, n_best=20, max_answer=30):
    answers = {}
    by_example = collections.defaultdict(list)
    for f in range(len(start_logits)):
        by_example[f // per_example].append(f)
    for ex, feats in by_example.items():
        best = (-math.inf, 0, 0)
        for f in feats:
            s, e = start_logits[f], end_logits[f]
            for i in np.argsort(s)[-1:-n_best - 1:-1]:
                for j in np.argsort(e)[-1:-n_best - 1:-1]:
                    if i <= j < i + max_answer and s[i] + e[j] > best[0]:
                        best = (s[i] + e[j], int(i), int(j))
        answers[ex] = best[1:]
    return answers


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=16, help="per device")
    parser.add_argument("--gradient-accumulation-steps", type=int, default=2)
    parser.add_argument("--num-train-epochs", type=int, default=2)
    args = parser.parse_args()
    accelerator = Accelerator(mixed_precision="fp16" if torch.cuda.is_available() else "no", gradient_accumulation_steps=args.gradient_accumulation_steps)
    torch.manual_seed(0)
    if SMALL:
        args.batch_size = 4
    vocab, length = (200, 48) if SMALL else (30522, 384)
    config = ElectraConfig(vocab_size=vocab, embedding_size=32 if SMALL else 768, hidden_size=64 if SMALL else 768, num_hidden_layers=2 if SMALL else 12,
                           num_attention_heads=4 if SMALL else 12, intermediate_size=128 if SMALL else 3072)
    model = ElectraForQuestionAnswering(config)
    train_set = Features(args.batch_size * args.gradient_accumulation_steps * (2 if SMALL else 6), length, vocab, True)
    eval_set = Features(args.batch_size * 5 + 1, length, vocab, False)
    train_loader = DataLoader(train_set, shuffle=True, batch_size=args.batch_size)
    eval_loader = DataLoader(eval_set, batch_size=args.batch_size * 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5)
    updates = math.ceil(len(train_loader) / args.gradient_accumulation_steps) * args.num_train_epochs
    scheduler = get_scheduler("linear", optimizer, 0, updates)
    model, optimizer, train_loader, eval_loader, scheduler = accelerator.prepare(model, optimizer, train_loader, eval_loader, scheduler)
    for epoch in range(args.num_train_epochs):
        model.train()
        total = 0
        for batch in train_loader:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                total += loss.detach().float()
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        model.eval()
        all_start, all_end = [], []
        for batch in eval_loader:
            with torch.no_grad():
                outputs = model(**batch)
            start = accelerator.pad_across_processes(outputs.start_logits, dim=1, pad_index=-100)
            end = accelerator.pad_across_processes(outputs.end_logits, dim=1, pad_index=-100)
            all_start.append(accelerator.gather_for_metrics(start).cpu().numpy())
            all_end.append(accelerator.gather_for_metrics(end).cpu().numpy())
        s, e = np.concatenate(all_start)[: len(eval_set)], np.concatenate(all_end)[: len(eval_set)]
        answers = postprocess(s, e)
        hit = np.mean([answers[i // 2][0] == int(eval_set.start[i]) for i in range(len(eval_set))])
        accelerator.print(f"epoch {epoch}: loss {total.item() / len(train_loader):.4f}, exact start {hit:.3f}")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
