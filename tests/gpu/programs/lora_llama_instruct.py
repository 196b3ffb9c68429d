"""Instruction tuning of a 1B-class Llama with LoRA: bf16 base, gradient checkpointing, accumulation."""
import argparse
import random

import torch
from peft import LoraConfig, TaskType, get_peft_model
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM, get_cosine_schedule_with_warmup

IGNORE = -100


def make_examples(n, vocab, max_len, seed):
    rng = random.Random(seed)
    out = []
    for _ in range(n):
        prompt = [rng.randrange(3, vocab) for _ in range(rng.randint(max_len // 16, max_len // 3))]
        answer = [rng.randrange(3, vocab) for _ in range(rng.randint(max_len // 16, max_len // 2))] + [2]
        ids = (prompt + answer)[:max_len]
        labels = ([IGNORE] * len(prompt) + answer)[:max_len]
        out.append((ids, labels))
    return out


def collate(rows):
    width = max(len(ids) for ids, _ in rows)
    width = (width + 7) // 8 * 8
    input_ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    labels = torch.full((len(rows), width), IGNORE, dtype=torch.long)
    for r, (ids, lab) in enumerate(rows):
        input_ids[r, :len(ids)] = torch.tensor(ids)
        labels[r, :len(lab)] = torch.tensor(lab)
        mask[r, :len(ids)] = 1
    return {"input_ids": input_ids, "attention_mask": mask, "labels": labels}


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=4)
    ap.add_argument("--grad-accum", type=int, default=4)
    ap.add_argument("--max-len", type=int, default=1024)
    ap.add_argument("--hidden", type=int, default=2048)
    ap.add_argument("--layers", type=int, default=16)
    ap.add_argument("--vocab", type=int, default=32000)
    ap.add_argument("--examples", type=int, default=320)
    ap.add_argument("--epochs", type=int, default=2)
    args = ap.parse_args()

    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = LlamaForCausalLM(LlamaConfig(
            vocab_size=args.vocab, hidden_size=args.hidden, intermediate_size=4 * args.hidden,
            num_hidden_layers=args.layers, num_attention_heads=args.hidden // 64, num_key_value_heads=8,
            max_position_embeddings=2048))
    torch.set_default_dtype(torch.float32)
    model.config.use_cache = False
    model.gradient_checkpointing_enable()
    model.enable_input_require_grads()
    model = get_peft_model(model, LoraConfig(
        task_type=TaskType.CAUSAL_LM, r=16, lora_alpha=32, lora_dropout=0.05,
        target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]))
    model.print_trainable_parameters()

    train = DataLoader(make_examples(args.examples, args.vocab, args.max_len, 0), args.batch_size, shuffle=True, collate_fn=collate)
    valid = DataLoader(make_examples(max(4, args.examples // 10), args.vocab, args.max_len, 1), args.batch_size, collate_fn=collate)
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(params, lr=2e-4, weight_decay=0.0)
    steps = args.epochs * len(train) // args.grad_accum
    scheduler = get_cosine_schedule_with_warmup(optimizer, steps // 10, steps)

    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for i, batch in enumerate(train):
            batch = {k: v.to("cuda") for k, v in batch.items()}
            loss = model(**batch).loss / args.grad_accum
            loss.backward()
            running += loss.item()
            if (i + 1) % args.grad_accum == 0:
                torch.nn.utils.clip_grad_norm_(params, 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
                print(f"epoch {epoch} step {(i + 1) // args.grad_accum} loss {running:.4f}")
                running = 0.0
        model.eval()
        with torch.no_grad():
            losses = [model(**{k: v.to("cuda") for k, v in b.items()}).loss.item() for b in valid]
        print(f"epoch {epoch} valid loss {sum(losses) / len(losses):.4f}")

    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
