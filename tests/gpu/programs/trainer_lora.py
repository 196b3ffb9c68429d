# SPDX-License-Identifier: Apache-2.0
"""Instruction tuning with LoRA: Trainer + peft, a frozen bf16 base."""
import argparse
import os
import tempfile

import torch
from peft import LoraConfig, TaskType, get_peft_model
from transformers import SeedOssConfig, SeedOssForCausalLM, Trainer, TrainingArguments

SMALL = os.environ.get("SMALL") == "1"
torch.manual_seed(0)
ap = argparse.ArgumentParser()
ap.add_argument("--batch-size", type=int, default=4)
ap.add_argument("--rank", type=int, default=16)
args = ap.parse_args()

config = SeedOssConfig(
    vocab_size=2000 if SMALL else 96000, hidden_size=128 if SMALL else 1536, intermediate_size=256 if SMALL else 5632,
    num_hidden_layers=2 if SMALL else 18, num_attention_heads=4 if SMALL else 24, num_key_value_heads=2 if SMALL else 4, head_dim=32 if SMALL else 64, use_cache=False,
    bos_token_id=1, eos_token_id=2, pad_token_id=0,
)
model = SeedOssForCausalLM(config).to(torch.bfloat16)
model = get_peft_model(model, LoraConfig(task_type=TaskType.CAUSAL_LM, r=args.rank, lora_alpha=32, lora_dropout=0.05,
                                         target_modules=["q_proj", "v_proj", "gate_proj", "up_proj", "down_proj"]))
model.print_trainable_parameters()

LENGTHS = [700, 512, 640, 380]


def collate(rows):
    """Pads to the longest of the batch; the prompt is not learned."""
    longest = max(len(r["ids"]) for r in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    mask, labels = torch.zeros_like(ids), torch.full_like(ids, -100)
    for i, r in enumerate(rows):
        n = len(r["ids"])
        ids[i, :n], mask[i, :n] = torch.tensor(r["ids"]), 1
        labels[i, n // 3:n] = torch.tensor(r["ids"][n // 3:])
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


g = torch.Generator().manual_seed(1)
rows = [{"ids": torch.randint(3, config.vocab_size, (LENGTHS[i % 4] // (8 if SMALL else 1),), generator=g).tolist()} for i in range(args.batch_size * 5)]
trainer = Trainer(
    model=model,
    args=TrainingArguments(output_dir=tempfile.mkdtemp(), per_device_train_batch_size=args.batch_size, max_steps=5, learning_rate=2e-4, bf16=torch.cuda.is_available(),
                           save_strategy="no", report_to=[], logging_steps=1, remove_unused_columns=False, train_sampling_strategy="sequential"),
    train_dataset=rows,
    data_collator=collate,
)
trainer.train()
if torch.cuda.is_available():
    s = torch.cuda.memory_stats()
    print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
