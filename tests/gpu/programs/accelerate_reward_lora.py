"""Pairwise (Bradley-Terry) reward model: LoRA on a Llama-style classifier, accelerate, bf16, accumulation."""
import argparse
import math

import numpy as np
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from peft import LoraConfig, TaskType, get_peft_model
from torch.utils.data import DataLoader, Dataset
from transformers import LlamaConfig, LlamaForSequenceClassification, get_scheduler


class Preferences(Dataset):
    def __init__(self, n, vocab, max_len, seed):
        rng = np.random.default_rng(seed)
        self.rows = []
        good = np.arange(10, 10 + vocab // 10)
        for _ in range(n):
            prompt = rng.integers(10, vocab, rng.integers(max_len // 16, max_len // 4))
            pair = []
            for frac in (0.3, 0.15):
                answer = rng.integers(10, vocab, rng.integers(max_len // 4, max_len * 3 // 4))
                nice = rng.random(len(answer)) < frac
                answer[nice] = rng.choice(good, nice.sum())
                pair.append(np.concatenate([[1], prompt, [3], answer, [2]])[:max_len])
            self.rows.append(pair)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class PairCollator:
    def __init__(self, pad_to=16):
        self.pad_to = pad_to

    def __call__(self, pairs):
        seqs = [p[0] for p in pairs] + [p[1] for p in pairs]
        longest = math.ceil(max(map(len, seqs)) / self.pad_to) * self.pad_to
        ids = torch.zeros(len(seqs), longest, dtype=torch.long)
        for k, s in enumerate(seqs):
            ids[k, :len(s)] = torch.from_numpy(s)
        return {"input_ids": ids, "attention_mask": (ids != 0).long()}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch_size", type=int, default=6)
    ap.add_argument("--accumulate", type=int, default=4)
    ap.add_argument("--hidden", type=int, default=1280)
    ap.add_argument("--layers", type=int, default=16)
    ap.add_argument("--vocab", type=int, default=32000)
    ap.add_argument("--max_len", type=int, default=448)
    ap.add_argument("--pairs", type=int, default=600)
    ap.add_argument("--epochs", type=int, default=2)
    args = ap.parse_args()

    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=args.accumulate)
    set_seed(13)
    config = LlamaConfig(vocab_size=args.vocab, hidden_size=args.hidden, intermediate_size=args.hidden * 11 // 4,
                         num_hidden_layers=args.layers, num_attention_heads=args.hidden // 64, num_key_value_heads=args.hidden // 256,
                         max_position_embeddings=1024, pad_token_id=0, num_labels=1, use_cache=False)
    model = LlamaForSequenceClassification(config)
    lora = LoraConfig(task_type=TaskType.SEQ_CLS, r=16, lora_alpha=32, lora_dropout=0.05,
                      target_modules=["q_proj", "k_proj", "v_proj", "o_proj"])
    model = get_peft_model(model, lora)
    model.print_trainable_parameters()
    train = DataLoader(Preferences(args.pairs, args.vocab, args.max_len, 1), args.batch_size, shuffle=True, collate_fn=PairCollator())
    val = DataLoader(Preferences(args.pairs // 6, args.vocab, args.max_len, 2), 2 * args.batch_size, collate_fn=PairCollator())
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-4)
    updates = math.ceil(len(train) / args.accumulate) * args.epochs
    scheduler = get_scheduler("linear", optimizer, num_warmup_steps=5, num_training_steps=updates)
    model, optimizer, train, val, scheduler = accelerator.prepare(model, optimizer, train, val, scheduler)

    for epoch in range(args.epochs):
        model.train()
        for step, batch in enumerate(train):
            with accelerator.accumulate(model):
                chosen, rejected = model(**batch).logits.squeeze(-1).chunk(2)
                loss = -F.logsigmoid(chosen - rejected).mean() + 0.001 * (chosen + rejected).pow(2).mean()
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if step % 20 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
        model.eval()
        margins = []
        for batch in val:
            with torch.no_grad():
                chosen, rejected = model(**batch).logits.squeeze(-1).chunk(2)
            margins.append(accelerator.gather_for_metrics(chosen - rejected).float().cpu())
        margins = torch.cat(margins)
        accelerator.print(f"epoch {epoch} accuracy {(margins > 0).float().mean():.3f} margin {margins.mean():.3f}")

    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
