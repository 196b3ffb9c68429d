# SPDX-License-Identifier: Apache-2.0
"""Dense retrieval: one BERT for queries and passages, in-batch negatives; the whole similarity matrix of the validation set on the GPU."""
import argparse
import logging
import os

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertModel, get_cosine_schedule_with_warmup

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("biencoder")
SMALL = os.environ.get("SMALL") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Pairs(Dataset):
    def __init__(self, n, qlen, plen, vocab):
        g = torch.Generator().manual_seed(n)
        self.q = torch.randint(1, vocab, (n, qlen), generator=g)
        self.p = torch.randint(1, vocab, (n, plen), generator=g)
        self.lengths = torch.randint(plen // 2, plen, (n,), generator=g)

    def __len__(self):
        return len(self.q)

    def __getitem__(self, i):
        mask = torch.zeros(self.p.shape[1], dtype=torch.long)
        mask[: self.lengths[i]] = 1
        return {"q": self.q[i], "p": self.p[i] * mask, "p_mask": mask}


def pool(hidden, mask):
    m = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * m).sum(1) / m.sum(1).clamp(min=1e-6)


class BiEncoder(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.bert = BertModel(config, add_pooling_layer=False)
        self.temperature = torch.nn.Parameter(torch.tensor(0.05))

    def forward(self, ids, mask):
        return F.normalize(pool(self.bert(input_ids=ids, attention_mask=mask).last_hidden_state, mask), dim=-1)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    qs, ps = [], []
    for b in loader:
        b = {k: v.to(device) for k, v in b.items()}
        with torch.autocast(device.type, dtype=torch.bfloat16):
            qs.append(model(b["q"], torch.ones_like(b["q"])))
            ps.append(model(b["p"], b["p_mask"]))
    q, p = torch.cat(qs).float(), torch.cat(ps).float()
    sim = q @ p.T
    order = sim.argsort(dim=1, descending=True)
    gold = torch.arange(len(q), device=device)
    rank = (order == gold[:, None]).float().argmax(1)
    result = {f"recall@{k}": (rank < k).float().mean().item() for k in (1, 10, 100)}
    result["mrr"] = (1.0 / (rank + 1)).mean().item()
    model.train()
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=96)
    parser.add_argument("--eval-every", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(0)
    vocab = 300 if SMALL else 30522
    config = BertConfig(vocab_size=vocab, hidden_size=64 if SMALL else 512, num_hidden_layers=2 if SMALL else 6, num_attention_heads=4 if SMALL else 8, intermediate_size=128 if SMALL else 2048)
    model = BiEncoder(config).to(device)
    if SMALL:
        args.batch_size = 8
    qlen, plen = (8, 24) if SMALL else (32, 192)
    train = DataLoader(Pairs(args.batch_size * 6, qlen, plen, vocab), args.batch_size, shuffle=True, drop_last=True)
    val = DataLoader(Pairs(40 if SMALL else 6000, qlen, plen, vocab), 16 if SMALL else 256)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    scheduler = get_cosine_schedule_with_warmup(optimizer, 2, 2 * len(train))
    step = 0
    for epoch in range(2):
        for b in train:
            b = {k: v.to(device) for k, v in b.items()}
            with torch.autocast(device.type, dtype=torch.bfloat16):
                q = model(b["q"], torch.ones_like(b["q"]))
                p = model(b["p"], b["p_mask"])
                logits = q @ p.T / model.temperature
            target = torch.arange(len(q), device=device)
            loss = (F.cross_entropy(logits.float(), target) + F.cross_entropy(logits.float().T, target)) / 2
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            step += 1
            if step % args.eval_every == 0:
                log.info("step %d loss %.4f %s", step, loss.item(), evaluate(model, val))


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
