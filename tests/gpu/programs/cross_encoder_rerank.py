"""Cross-encoder reranker: each query comes with one relevant passage and several hard negatives; listwise softmax, fp16."""
import argparse
import random
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertModel, get_linear_schedule_with_warmup

PAD, CLS, SEP = 0, 1, 2
VOCAB = 30522


class Passages(Dataset):
    def __init__(self, n, negatives, max_len, seed):
        self.rng = random.Random(seed)
        self.negatives, self.max_len = negatives, max_len
        self.items = []
        for _ in range(n):
            topic = self.rng.randrange(200)
            query = self.words(topic, self.rng.randint(5, 20))
            good = self.words(topic, self.rng.randint(60, max_len - 30))
            bad = [self.words(self.rng.randrange(200), self.rng.randint(60, max_len - 30)) for _ in range(negatives)]
            self.items.append((query, good, bad))

    def words(self, topic, n):
        base = 1000 + topic * 140
        return [base + int(140 * self.rng.random() ** 2) if self.rng.random() < 0.4 else self.rng.randrange(1000, VOCAB) for _ in range(n)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        query, good, bad = self.items[i]
        rows = []
        for passage in [good] + bad:
            ids = [CLS] + query + [SEP] + passage + [SEP]
            rows.append((ids[:self.max_len], [0] * (len(query) + 2) + [1] * (len(ids) - len(query) - 2)))
        return rows


@dataclass
class Collator:
    multiple: int = 8

    def __call__(self, batch):
        rows = [r for item in batch for r in item]
        longest = max(len(r[0]) for r in rows)
        longest += -longest % self.multiple
        ids = torch.zeros(len(rows), longest, dtype=torch.long)
        types = torch.zeros_like(ids)
        for k, (a, t) in enumerate(rows):
            ids[k, :len(a)] = torch.tensor(a)
            types[k, :len(a)] = torch.tensor(t[:len(a)])
        return {"input_ids": ids, "token_type_ids": types, "attention_mask": (ids != PAD).long()}


class CrossEncoder(nn.Module):
    def __init__(self, hidden, layers, max_len):
        super().__init__()
        config = BertConfig(vocab_size=VOCAB, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=hidden // 32,
                            intermediate_size=4 * hidden, max_position_embeddings=max_len)
        self.bert = BertModel(config, add_pooling_layer=False)
        self.dropout = nn.Dropout(0.1)
        self.score = nn.Linear(hidden, 1)

    def forward(self, **batch):
        h = self.bert(**batch).last_hidden_state[:, 0]
        return self.score(self.dropout(h)).squeeze(-1)


def mrr_at_10(model, loader, device, group):
    model.eval()
    ranks = []
    with torch.no_grad():
        for batch in loader:
            batch = {k: v.to(device) for k, v in batch.items()}
            with torch.autocast(device.type, dtype=torch.float16):
                scores = model(**batch).float().view(-1, group)
            rank = (scores > scores[:, :1]).sum(1) + 1
            ranks.append(rank.cpu())
    model.train()
    ranks = torch.cat(ranks).float()
    return (1 / ranks * (ranks <= 10)).mean().item()


def run(args):
    random.seed(0)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    group = 1 + args.negatives
    train = DataLoader(Passages(args.queries, args.negatives, args.max_len, 1), batch_size=args.batch_size, shuffle=True,
                       collate_fn=Collator(), num_workers=2, drop_last=True)
    dev = DataLoader(Passages(args.queries // 10, args.negatives, args.max_len, 2), batch_size=2 * args.batch_size, collate_fn=Collator())
    model = CrossEncoder(args.hidden, args.layers, args.max_len).to(device)
    no_decay = [p for n, p in model.named_parameters() if p.ndim < 2]
    decay = [p for n, p in model.named_parameters() if p.ndim >= 2]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.01}, {"params": no_decay, "weight_decay": 0.0}], lr=args.lr)
    total = len(train) * args.epochs
    scheduler = get_linear_schedule_with_warmup(optimizer, total // 10, total)
    scaler = torch.amp.GradScaler(device.type)
    for epoch in range(args.epochs):
        for i, batch in enumerate(train):
            batch = {k: v.to(device) for k, v in batch.items()}
            optimizer.zero_grad()
            with torch.autocast(device.type, dtype=torch.float16):
                scores = model(**batch).view(-1, group)
                loss = F.cross_entropy(scores, torch.zeros(len(scores), dtype=torch.long, device=device))
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            if i % 25 == 0:
                print(f"epoch {epoch} step {i} loss {loss.item():.4f}", flush=True)
        print(f"epoch {epoch} MRR@10 {mrr_at_10(model, dev, device, group):.4f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--negatives", type=int, default=7)
    p.add_argument("--max-len", type=int, default=256)
    p.add_argument("--queries", type=int, default=1600)
    p.add_argument("--hidden", type=int, default=384)
    p.add_argument("--layers", type=int, default=12)
    p.add_argument("--lr", type=float, default=1e-4)
    p.add_argument("--epochs", type=int, default=2)
    run(p.parse_args())
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
