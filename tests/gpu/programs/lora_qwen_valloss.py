# SPDX-License-Identifier: Apache-2.0
"""LoRA instruction tuning of a small Qwen2 decoder with peft in a plain loop: bf16 weights, gradient checkpointing, prompt masked in the labels, validation loss and perplexity per epoch."""
import argparse
import math
import os
import tempfile

import torch
from peft import LoraConfig, TaskType, get_peft_model
from torch.utils.data import DataLoader, Dataset
from transformers import Qwen2Config, Qwen2ForCausalLM, get_linear_schedule_with_warmup

SMALL = os.environ.get("SMALL") == "1"
IGNORE = -100


class Instructions(Dataset):
    def __init__(self, n, max_len, vocab, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            total = int(torch.randint(max_len // 2, max_len + 1, (1,), generator=g))
            prompt = total // 3
            ids = torch.randint(1, vocab, (total,), generator=g)
            labels = ids.clone()
            labels[:prompt] = IGNORE
            self.items.append((ids, labels))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class PadCollator:
    def __init__(self, multiple=8, max_length=None):
        self.multiple, self.max_length = multiple, max_length

    def __call__(self, batch):
        width = self.max_length or max(len(i) for i, _ in batch)
        width = math.ceil(width / self.multiple) * self.multiple
        ids = torch.zeros(len(batch), width, dtype=torch.long)
        labels = torch.full((len(batch), width), IGNORE)
        mask = torch.zeros(len(batch), width, dtype=torch.long)
        for r, (i, l) in enumerate(batch):
            ids[r, : len(i)], labels[r, : len(l)], mask[r, : len(i)] = i, l, 1
        return {"input_ids": ids, "labels": labels, "attention_mask": mask}


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    losses = []
    for batch in loader:
        batch = {k: v.to(device) for k, v in batch.items()}
        losses.append(model(**batch).loss.float())
    model.train()
    return torch.stack(losses).mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=4)
    ap.add_argument("--grad-accum", type=int, default=2)
    ap.add_argument("--rank", type=int, default=16)
    ap.add_argument("--epochs", type=int, default=2)
    args = ap.parse_args()
    torch.manual_seed(3407)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if SMALL:
        args.batch_size = min(args.batch_size, 2)
    vocab, max_len = (500, 48) if SMALL else (151936, 768)
    config = Qwen2Config(
        vocab_size=vocab, hidden_size=64 if SMALL else 896, intermediate_size=128 if SMALL else 4864, num_hidden_layers=2 if SMALL else 24,
        num_attention_heads=4 if SMALL else 14, num_key_value_heads=2, max_position_embeddings=2048, tie_word_embeddings=True, use_cache=False,
    )
    model = Qwen2ForCausalLM(config).to(torch.bfloat16)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.enable_input_require_grads()
    peft_config = LoraConfig(
        task_type=TaskType.CAUSAL_LM, r=args.rank, lora_alpha=2 * args.rank, lora_dropout=0.05, bias="none",
        target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    )
    model = get_peft_model(model, peft_config)
    model.print_trainable_parameters()
    model.to(device)

    train = DataLoader(Instructions(args.batch_size * args.grad_accum * (2 if SMALL else 6), max_len, vocab, 0), args.batch_size, shuffle=True, collate_fn=PadCollator(max_length=max_len))
    val = DataLoader(Instructions(args.batch_size * 4, max_len, vocab, 1), args.batch_size, collate_fn=PadCollator(max_length=max_len))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-4)
    total = args.epochs * len(train) // args.grad_accum
    scheduler = get_linear_schedule_with_warmup(optimizer, 1, total)
    best = float("inf")
    out = tempfile.mkdtemp()
    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for i, batch in enumerate(train):
            batch = {k: v.to(device) for k, v in batch.items()}
            loss = model(**batch).loss / args.grad_accum
            loss.backward()
            running += loss.item()
            if (i + 1) % args.grad_accum == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.3)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        val_loss = evaluate(model, val, device)
        print(f"epoch {epoch}: train {running * args.grad_accum / len(train):.4f} val {val_loss:.4f} ppl {math.exp(min(val_loss, 20)):.1f}")
        if val_loss < best:
            best = val_loss
            model.save_pretrained(out)


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
