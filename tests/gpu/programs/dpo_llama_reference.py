# SPDX-License-Identifier: Apache-2.0
"""Preference tuning (DPO): a Llama-like policy and its frozen copy, checkpointing, accumulation; evaluated before training and every few updates."""
import argparse
import copy
import os

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from transformers import LlamaConfig, LlamaForCausalLM

SMALL = os.environ.get("SMALL") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Preferences(Dataset):
    def __init__(self, n, prompt, answer, vocab):
        self.n, self.prompt, self.answer, self.vocab = n, prompt, answer, vocab

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        prompt = torch.randint(3, self.vocab, (self.prompt,), generator=g)
        draw = lambda: torch.randint(3, self.vocab, (int(torch.randint(self.answer // 2, self.answer, (1,), generator=g)),), generator=g)
        return prompt, draw(), draw()


def collate(items):
    longest = max(len(p) + max(len(a), len(b)) for p, a, b in items)
    ids = torch.zeros(2 * len(items), longest, dtype=torch.long)
    mask, loss_mask = torch.zeros_like(ids), torch.zeros_like(ids)
    for r, (p, a, b) in enumerate(items):
        for row, ans in ((r, a), (r + len(items), b)):
            n = len(p) + len(ans)
            ids[row, :n] = torch.cat([p, ans])
            mask[row, :n] = 1
            loss_mask[row, len(p):n] = 1
    return ids, mask, loss_mask


def logps(model, ids, mask, loss_mask):
    with torch.autocast(device.type, dtype=torch.bfloat16):
        logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
    logp = torch.gather(logits[:, :-1].float().log_softmax(-1), 2, ids[:, 1:, None]).squeeze(2)
    return (logp * loss_mask[:, 1:]).sum(-1)


def dpo(policy, reference, batch, beta=0.1):
    ids, mask, loss_mask = (t.to(device) for t in batch)
    with torch.no_grad():
        ref = logps(reference, ids, mask, loss_mask)
    pol = logps(policy, ids, mask, loss_mask)
    chosen, rejected = (pol - ref).chunk(2)
    margin = beta * (chosen - rejected)
    return -F.logsigmoid(margin).mean(), (margin > 0).float().mean()


def evaluate(policy, reference, loader):
    policy.eval()
    losses, accs = [], []
    with torch.no_grad():
        for batch in loader:
            loss, acc = dpo(policy, reference, batch)
            losses.append(loss.item())
            accs.append(acc.item())
    policy.train()
    return {"eval_loss": sum(losses) / len(losses), "eval_acc": sum(accs) / len(accs)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--eval-every", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(0)
    if SMALL:
        args.batch_size = 2
        config = LlamaConfig(vocab_size=200, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128)
    else:
        config = LlamaConfig(vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16, num_key_value_heads=4, max_position_embeddings=1024)
    prompt, answer = (10, 20) if SMALL else (128, 384)
    policy = LlamaForCausalLM(config).to(device)
    reference = copy.deepcopy(policy).to(torch.bfloat16).eval().requires_grad_(False)
    policy.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    policy.train()
    data = lambda n: Preferences(n, prompt, answer, config.vocab_size)
    train = DataLoader(data(args.batch_size * args.accumulate * (2 if SMALL else 5)), args.batch_size, shuffle=True, collate_fn=collate)
    val = DataLoader(data(args.batch_size * 2), args.batch_size, collate_fn=collate)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=5e-6, betas=(0.9, 0.99), weight_decay=0.0)
    print("before", evaluate(policy, reference, val))
    update = 0
    for epoch in range(2):
        for i, batch in enumerate(train):
            loss, acc = dpo(policy, reference, batch)
            (loss / args.accumulate).backward()
            if (i + 1) % args.accumulate == 0:
                torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
                update += 1
                if update % args.eval_every == 0:
                    print(update, loss.item(), evaluate(policy, reference, val))
    print("after", evaluate(policy, reference, val))


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
