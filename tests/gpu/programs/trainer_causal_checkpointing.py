# SPDX-License-Identifier: Apache-2.0
"""Pretraining of a small causal language model, Trainer with checkpointing, accumulation and Adafactor."""
import argparse
import os
import tempfile

import torch
from transformers import ArceeConfig, ArceeForCausalLM, Trainer, TrainingArguments, set_seed

SMALL = os.environ.get("SMALL") == "1"
torch.manual_seed(0)
set_seed(0)

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=6)
parser.add_argument("--block", type=int, default=64 if SMALL else 1024)
args = parser.parse_args()

config = ArceeConfig(
    vocab_size=1000 if SMALL else 64000,
    hidden_size=256 if SMALL else 1280,
    intermediate_size=512 if SMALL else 5120,
    num_hidden_layers=2 if SMALL else 16,
    num_attention_heads=8 if SMALL else 20,
    num_key_value_heads=4,
    max_position_embeddings=2048,
    use_cache=False,
    bos_token_id=1, eos_token_id=2,
)
model = ArceeForCausalLM(config)
print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f}M parameters")


class Blocks(torch.utils.data.Dataset):
    def __init__(self, count):
        self.tokens = torch.randint(3, config.vocab_size, (count, args.block))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        return {"input_ids": self.tokens[i], "labels": self.tokens[i]}


trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        per_device_train_batch_size=args.batch_size,
        gradient_accumulation_steps=2,
        gradient_checkpointing=True,
        gradient_checkpointing_kwargs={"use_reentrant": False},
        max_steps=4,
        optim="adafactor",
        learning_rate=1e-3,
        lr_scheduler_type="cosine",
        warmup_steps=1,
        max_grad_norm=0.5,
        bf16=torch.cuda.is_available(),
        save_strategy="no",
        logging_steps=1,
        report_to="none",
    ),
    train_dataset=Blocks(args.batch_size * 8),
)
trainer.train()

if torch.cuda.is_available():
    s = torch.cuda.memory_stats()
    print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
