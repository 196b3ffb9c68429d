"""Masked language model pre-training on packed blocks. Own encoder whose blocks are compiled one by one, bf16, fused AdamW."""
import math
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

env = lambda k, d: type(d)(os.environ.get(k, d))
VOCAB, SEQ, BATCH = env("VOCAB", 30522), env("SEQ", 256), env("BATCH", 64)
DIM, LAYERS, HEADS = env("DIM", 768), env("LAYERS", 12), env("HEADS", 12)
STEPS, VAL_EVERY, LR = env("STEPS", 160), env("VAL_EVERY", 40), 4e-4
MASKED = max(1, int(0.15 * SEQ))
MASK_TOKEN = 4
COMPILE = env("COMPILE", 1)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")


class Packed(Dataset):
    """Blocks of text from a Markov-like source; the same number of positions is masked in each block."""

    def __init__(self, blocks, seed):
        g = torch.Generator().manual_seed(seed)
        start = torch.randint(0, VOCAB, (blocks, 1), generator=g)
        step = torch.randint(1, 7, (blocks, SEQ), generator=g)
        self.ids = (start + step.cumsum(1)) % (VOCAB - 10) + 10

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        ids = self.ids[i]
        where = torch.randperm(SEQ)[:MASKED]
        target = ids[where]
        ids = ids.clone()
        roll = torch.rand(MASKED)
        ids[where] = torch.where(roll < 0.8, torch.tensor(MASK_TOKEN), torch.where(roll < 0.9, torch.randint(10, VOCAB, (MASKED,)), target))
        return ids, where, target


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.drop(self.out(a.transpose(1, 2).reshape(b, t, DIM)))
        return x + self.drop(self.down(F.gelu(self.up(self.n2(x)))))


class MLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, DIM), nn.Embedding(SEQ, DIM)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(DIM)
        self.transform = nn.Sequential(nn.Linear(DIM, DIM), nn.GELU(), nn.LayerNorm(DIM))
        self.bias = nn.Parameter(torch.zeros(VOCAB))
        for m in self.modules():
            if isinstance(m, (nn.Linear, nn.Embedding)):
                nn.init.normal_(m.weight, std=0.02)

    def forward(self, ids, where):
        x = self.tok(ids) + self.pos.weight[: ids.shape[1]]
        for blk in self.blocks:
            x = blk(x)
        x = self.norm(x)
        picked = torch.gather(x, 1, where[..., None].expand(-1, -1, DIM))
        return F.linear(self.transform(picked), self.tok.weight, self.bias)


def loss_of(model, batch):
    ids, where, target = (t.to(device, non_blocking=True) for t in batch)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        logits = model(ids, where)
    return F.cross_entropy(logits.float().flatten(0, 1), target.flatten()), logits, target


def main():
    train = DataLoader(Packed(BATCH * 100, 1), BATCH, shuffle=True, drop_last=True, num_workers=2, pin_memory=device.type == "cuda")
    val = DataLoader(Packed(BATCH * 4, 2), BATCH)
    model = MLM().to(device)
    if COMPILE:
        for blk in model.blocks:
            blk.compile()
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}], LR, fused=device.type == "cuda")
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1, (s + 1) / 20) * 0.5 * (1 + math.cos(math.pi * s / STEPS)))
    step, start = 0, time.time()
    while step < STEPS:
        for batch in train:
            loss, _, _ = loss_of(model, batch)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            step += 1
            if step % VAL_EVERY == 0:
                model.eval()
                with torch.no_grad():
                    scores = [loss_of(model, b) for b in val]
                    vloss = sum(s[0].item() for s in scores) / len(scores)
                    acc = sum((s[1].argmax(-1) == s[2]).float().mean().item() for s in scores) / len(scores)
                del scores
                model.train()
                print(f"step {step} train {loss.item():.3f} val {vloss:.3f} acc {acc:.4f} {time.time() - start:.0f}s", flush=True)
            if step >= STEPS:
                break


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
