# SPDX-License-Identifier: Apache-2.0
"""Summarization: encoder-decoder under accelerate with bf16, clipping, a scheduler, a validation pass."""
import argparse
import os

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset
from transformers import PLBartConfig, PLBartForConditionalGeneration, get_linear_schedule_with_warmup

SMALL = os.environ.get("SMALL") == "1"


def loader(n, source, target, vocab, batch, shuffle):
    data = TensorDataset(torch.randint(5, vocab, (n, source)), torch.randint(5, vocab, (n, target)))
    return DataLoader(data, batch_size=batch, shuffle=shuffle)


def main(args):
    torch.manual_seed(0)
    set_seed(0)
    accelerator = Accelerator(mixed_precision="bf16" if torch.cuda.is_available() else "no")
    vocab = 1000 if SMALL else 50005
    layers = 2 if SMALL else 8
    config = PLBartConfig(vocab_size=vocab, d_model=128 if SMALL else 768, encoder_layers=layers, decoder_layers=layers, encoder_attention_heads=8, decoder_attention_heads=8,
                          encoder_ffn_dim=256 if SMALL else 3072, decoder_ffn_dim=256 if SMALL else 3072, max_position_embeddings=1024, use_cache=False)
    model = PLBartForConditionalGeneration(config)
    source, target = (40, 12) if SMALL else (420, 96)
    train = loader(args.batch_size * 5, source, target, vocab, args.batch_size, True)
    valid = loader(args.batch_size * 2, source, target, vocab, args.batch_size, False)
    no_decay = ["bias", "layer_norm.weight", "layernorm_embedding.weight"]
    groups = [
        {"params": [p for n, p in model.named_parameters() if not any(k in n for k in no_decay)], "weight_decay": 0.01},
        {"params": [p for n, p in model.named_parameters() if any(k in n for k in no_decay)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=5e-5)
    schedule = get_linear_schedule_with_warmup(optimizer, 1, 5)
    model, optimizer, train, valid, schedule = accelerator.prepare(model, optimizer, train, valid, schedule)
    model.train()
    for step, (ids, labels) in enumerate(train):
        out = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels)
        accelerator.backward(out.loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        accelerator.print(step, out.loss.item())
    model.eval()
    losses = []
    for ids, labels in valid:
        with torch.no_grad():
            loss = model(input_ids=ids, labels=labels).loss
        losses.append(accelerator.gather_for_metrics(loss.repeat(len(ids))))
    accelerator.print("validation", torch.cat(losses).mean().item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=16)
    main(parser.parse_args())
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
