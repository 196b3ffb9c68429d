#!/usr/bin/env python
"""Causal LM pre-training of a Pythia-410m sized GPT-NeoX with accelerate."""
import argparse
import math

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, get_scheduler


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--per-device-train-batch-size", "--batch-size", dest="batch_size", type=int, default=4)
    parser.add_argument("--block-size", type=int, default=1024)
    parser.add_argument("--gradient-accumulation-steps", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=3e-4)
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--num-train-epochs", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=400)
    parser.add_argument("--hidden-size", type=int, default=1024)
    parser.add_argument("--num-layers", type=int, default=24)
    parser.add_argument("--vocab-size", type=int, default=50304)
    parser.add_argument("--mixed-precision", default="bf16")
    return parser.parse_args()


def main():
    args = parse_args()
    accelerator = Accelerator(mixed_precision=args.mixed_precision,
                              gradient_accumulation_steps=args.gradient_accumulation_steps)
    set_seed(0)

    config = GPTNeoXConfig(
        vocab_size=args.vocab_size,
        hidden_size=args.hidden_size,
        num_hidden_layers=args.num_layers,
        num_attention_heads=args.hidden_size // 64,
        intermediate_size=4 * args.hidden_size,
        max_position_embeddings=2048,
        use_cache=False,
    )
    model = GPTNeoXForCausalLM(config)
    accelerator.print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.0f}M parameters")

    tokens = torch.randint(0, args.vocab_size, (args.blocks, args.block_size))
    val_tokens = torch.randint(0, args.vocab_size, (max(4, args.blocks // 10), args.block_size))
    train_loader = DataLoader(TensorDataset(tokens), shuffle=True, batch_size=args.batch_size)
    eval_loader = DataLoader(TensorDataset(val_tokens), batch_size=args.batch_size)

    no_decay = ["bias", "layernorm", "layer_norm"]
    groups = [
        {"params": [p for n, p in model.named_parameters() if not any(nd in n for nd in no_decay)],
         "weight_decay": args.weight_decay},
        {"params": [p for n, p in model.named_parameters() if any(nd in n for nd in no_decay)],
         "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=args.learning_rate, betas=(0.9, 0.95))
    updates = math.ceil(len(train_loader) / args.gradient_accumulation_steps) * args.num_train_epochs
    lr_scheduler = get_scheduler("cosine", optimizer=optimizer, num_warmup_steps=updates // 10, num_training_steps=updates)

    model, optimizer, train_loader, eval_loader, lr_scheduler = accelerator.prepare(
        model, optimizer, train_loader, eval_loader, lr_scheduler)

    for epoch in range(args.num_train_epochs):
        model.train()
        total_loss = 0
        for step, (ids,) in enumerate(train_loader):
            with accelerator.accumulate(model):
                outputs = model(input_ids=ids, labels=ids)
                loss = outputs.loss
                total_loss += loss.detach().float()
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()

        model.eval()
        losses = []
        for (ids,) in eval_loader:
            with torch.no_grad():
                outputs = model(input_ids=ids, labels=ids)
            losses.append(accelerator.gather_for_metrics(outputs.loss.repeat(ids.size(0))))
        eval_loss = torch.mean(torch.cat(losses))
        try:
            perplexity = math.exp(eval_loss)
        except OverflowError:
            perplexity = float("inf")
        accelerator.print(f"epoch {epoch}: train {total_loss.item() / len(train_loader):.4f} perplexity {perplexity:.1f}")

    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
