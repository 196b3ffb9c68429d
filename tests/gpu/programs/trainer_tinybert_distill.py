"""Distil a BERT-base teacher into a four-layer student: attention maps, hidden states and soft labels, in a Trainer subclass."""
import argparse
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import accuracy_score, f1_score
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

VOCAB, LABELS = 30522, 6


class Sentences(Dataset):
    def __init__(self, n, max_len, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, LABELS, n)
        self.texts = []
        for y in self.labels:
            body = rng.integers(1000, VOCAB, rng.integers(max_len // 3, max_len - 1))
            mark = rng.random(len(body)) < 0.15
            body[mark] = 1000 + 100 * y + rng.integers(0, 100, mark.sum())
            self.texts.append([101, *body.tolist(), 102])

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return {"input_ids": self.texts[i], "labels": int(self.labels[i])}


def collate(items):
    longest = max(len(x["input_ids"]) for x in items)
    ids = torch.zeros(len(items), longest, dtype=torch.long)
    for row, x in zip(ids, items):
        row[:len(x["input_ids"])] = torch.tensor(x["input_ids"])
    return {"input_ids": ids, "attention_mask": (ids > 0).long(), "labels": torch.tensor([x["labels"] for x in items])}


class Student(nn.Module):
    """The student with the projections that map its hidden states to the teacher's width."""

    def __init__(self, config, teacher_width):
        super().__init__()
        self.bert = BertForSequenceClassification(config)
        self.project = nn.Linear(config.hidden_size, teacher_width)

    def forward(self, input_ids, attention_mask, labels=None, distil=False):
        out = self.bert(input_ids=input_ids, attention_mask=attention_mask, labels=labels,
                        output_hidden_states=distil, output_attentions=distil)
        if distil:
            return out, [self.project(h) for h in out.hidden_states]
        return {"loss": out.loss, "logits": out.logits}


class DistillationTrainer(Trainer):
    def __init__(self, *args, teacher, temperature=2.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.teacher = teacher.to(self.args.device).eval()
        self.temperature = temperature

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        if not model.training:
            out = model(**inputs)
            return (out["loss"], out) if return_outputs else out["loss"]
        student, hidden = model(**inputs, distil=True)
        with torch.no_grad():
            teacher = self.teacher(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"],
                                   output_hidden_states=True, output_attentions=True)
        step = (len(teacher.hidden_states) - 1) // (len(hidden) - 1)
        mask = inputs["attention_mask"][..., None].float()
        loss_h = sum((((s - teacher.hidden_states[i * step]).float() ** 2) * mask).mean() for i, s in enumerate(hidden))
        loss_a = sum(F.mse_loss(s.mean(1).float(), teacher.attentions[(i + 1) * step - 1].mean(1).float())
                     for i, s in enumerate(student.attentions))
        t = self.temperature
        loss_kd = F.kl_div((student.logits.float() / t).log_softmax(-1), (teacher.logits.float() / t).softmax(-1),
                           reduction="batchmean") * t * t
        loss = 0.5 * student.loss + 0.5 * loss_kd + loss_h + 10 * loss_a
        return (loss, {"logits": student.logits}) if return_outputs else loss


def metrics(p):
    pred = p.predictions.argmax(-1)
    return {"accuracy": accuracy_score(p.label_ids, pred), "macro_f1": f1_score(p.label_ids, pred, average="macro")}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--max-len", type=int, default=256)
    ap.add_argument("--examples", type=int, default=6400)
    ap.add_argument("--teacher-width", type=int, default=768)
    ap.add_argument("--teacher-layers", type=int, default=12)
    ap.add_argument("--student-width", type=int, default=384)
    ap.add_argument("--epochs", type=float, default=2)
    a = ap.parse_args()
    torch.manual_seed(0)
    big = BertConfig(vocab_size=VOCAB, hidden_size=a.teacher_width, num_hidden_layers=a.teacher_layers, num_labels=LABELS,
                     num_attention_heads=a.teacher_width // 64, intermediate_size=4 * a.teacher_width, attn_implementation="eager")
    small = BertConfig(vocab_size=VOCAB, hidden_size=a.student_width, num_hidden_layers=4, num_labels=LABELS, num_attention_heads=12,
                       intermediate_size=4 * a.student_width, attn_implementation="eager")
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(output_dir=out, per_device_train_batch_size=a.batch_size, per_device_eval_batch_size=a.batch_size,
                                 num_train_epochs=a.epochs, learning_rate=3e-4, bf16=torch.cuda.is_available(), eval_strategy="steps",
                                 eval_steps=50, save_strategy="no", logging_steps=25, report_to="none", warmup_steps=20,
                                 optim="adamw_torch_fused" if torch.cuda.is_available() else "adamw_torch",
                                 remove_unused_columns=False, label_names=["labels"])
        trainer = DistillationTrainer(model=Student(small, a.teacher_width), args=args, teacher=BertForSequenceClassification(big),
                                      train_dataset=Sentences(a.examples, a.max_len, 1), data_collator=collate,
                                      eval_dataset=Sentences(a.examples // 10, a.max_len, 2), compute_metrics=metrics)
        trainer.train()
        print(trainer.evaluate())


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
