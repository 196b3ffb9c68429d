"""Transformer-XL: segment recurrence with cached memories and relative positions (WikiText-103 style)."""
import math
import os
import random
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 1111
VOCAB = 60000
CUTOFFS = [4000, 15000]
N_LAYER, D_MODEL, N_HEAD, D_INNER = 12, 512, 8, 2048
TGT_LEN, MEM_LEN, EVAL_TGT_LEN = 256, 256, 128
BATCH, EVAL_BATCH = 16, 10
N_TOKENS = 16 * 256 * 40
MAX_STEP = 72
LR = 2.5e-4
CLIP = 0.25

random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class LMOrderedIterator:
    def __init__(self, data, bsz, bptt, device):
        self.bptt = bptt
        n_step = data.size(0) // bsz
        self.data = data[: n_step * bsz].view(bsz, -1).t().contiguous().to(device)

    def __iter__(self):
        for i in range(0, self.data.size(0) - 1, self.bptt):
            seq_len = min(self.bptt, self.data.size(0) - 1 - i)
            yield self.data[i:i + seq_len], self.data[i + 1:i + 1 + seq_len]


class PositionalEmbedding(nn.Module):
    def __init__(self, demb):
        super().__init__()
        self.register_buffer("inv_freq", 1 / (10000 ** (torch.arange(0.0, demb, 2.0) / demb)))

    def forward(self, pos_seq):
        s = torch.outer(pos_seq, self.inv_freq)
        return torch.cat([s.sin(), s.cos()], dim=-1)[:, None, :]


class PositionwiseFF(nn.Module):
    def __init__(self, d_model, d_inner, dropout):
        super().__init__()
        self.core = nn.Sequential(nn.Linear(d_model, d_inner), nn.ReLU(inplace=True), nn.Dropout(dropout),
                                  nn.Linear(d_inner, d_model), nn.Dropout(dropout))
        self.layer_norm = nn.LayerNorm(d_model)

    def forward(self, x):
        return self.layer_norm(x + self.core(x))


class RelPartialLearnableMultiHeadAttn(nn.Module):
    def __init__(self, n_head, d_model, dropout, dropatt):
        super().__init__()
        self.n_head, self.d_head = n_head, d_model // n_head
        self.qkv_net = nn.Linear(d_model, 3 * d_model, bias=False)
        self.r_net = nn.Linear(d_model, d_model, bias=False)
        self.o_net = nn.Linear(d_model, d_model, bias=False)
        self.drop, self.dropatt = nn.Dropout(dropout), nn.Dropout(dropatt)
        self.layer_norm = nn.LayerNorm(d_model)
        self.scale = 1 / math.sqrt(self.d_head)

    @staticmethod
    def _rel_shift(x):
        zero_pad = torch.zeros((x.size(0), 1, *x.size()[2:]), device=x.device, dtype=x.dtype)
        x_padded = torch.cat([zero_pad, x], dim=1)
        x_padded = x_padded.view(x.size(1) + 1, x.size(0), *x.size()[2:])
        return x_padded[1:].view_as(x)

    def forward(self, w, r, r_w_bias, r_r_bias, attn_mask, mems):
        qlen, rlen, bsz = w.size(0), r.size(0), w.size(1)
        cat = torch.cat([mems, w], 0) if mems is not None else w
        q, k, v = torch.chunk(self.qkv_net(cat), 3, dim=-1)
        q = q[-qlen:]
        klen = k.size(0)
        q = q.view(qlen, bsz, self.n_head, self.d_head)
        k = k.view(klen, bsz, self.n_head, self.d_head)
        v = v.view(klen, bsz, self.n_head, self.d_head)
        r = self.r_net(r).view(rlen, self.n_head, self.d_head)

        AC = torch.einsum("ibnd,jbnd->ijbn", q + r_w_bias, k)
        BD = torch.einsum("ibnd,jnd->ijbn", q + r_r_bias, r)
        BD = self._rel_shift(BD)
        attn_score = (AC + BD).mul_(self.scale)
        attn_score = attn_score.float().masked_fill(attn_mask[:, :, :, None], -1e30).type_as(attn_score)
        attn_prob = self.dropatt(F.softmax(attn_score, dim=1))
        vec = torch.einsum("ijbn,jbnd->ibnd", attn_prob, v)
        vec = vec.contiguous().view(qlen, bsz, -1)
        return self.layer_norm(w + self.drop(self.o_net(vec)))


class DecoderLayer(nn.Module):
    def __init__(self, n_head, d_model, d_inner, dropout, dropatt):
        super().__init__()
        self.dec_attn = RelPartialLearnableMultiHeadAttn(n_head, d_model, dropout, dropatt)
        self.pos_ff = PositionwiseFF(d_model, d_inner, dropout)

    def forward(self, x, r, rwb, rrb, mask, mems):
        return self.pos_ff(self.dec_attn(x, r, rwb, rrb, mask, mems))


class MemTransformerLM(nn.Module):
    def __init__(self, dropout=0.1, dropatt=0.0):
        super().__init__()
        self.word_emb = nn.Embedding(VOCAB, D_MODEL)
        self.pos_emb = PositionalEmbedding(D_MODEL)
        self.drop = nn.Dropout(dropout)
        d_head = D_MODEL // N_HEAD
        self.r_w_bias = nn.Parameter(torch.zeros(N_HEAD, d_head))
        self.r_r_bias = nn.Parameter(torch.zeros(N_HEAD, d_head))
        self.layers = nn.ModuleList([DecoderLayer(N_HEAD, D_MODEL, D_INNER, dropout, dropatt) for _ in range(N_LAYER)])
        self.crit = nn.AdaptiveLogSoftmaxWithLoss(D_MODEL, VOCAB, CUTOFFS, div_value=2.0)
        self.apply(self._init)

    @staticmethod
    def _init(m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, 0.0, 0.02)

    def init_mems(self):
        p = next(self.parameters())
        return [torch.empty(0, dtype=p.dtype, device=p.device) for _ in range(N_LAYER + 1)]

    def _update_mems(self, hids, mems, mlen, qlen):
        with torch.no_grad():
            end_idx = mlen + max(0, qlen)
            beg_idx = max(0, end_idx - MEM_LEN)
            new_mems = []
            for m, h in zip(mems, hids):
                cat = torch.cat([m, h], dim=0) if m.numel() else h
                new_mems.append(cat[beg_idx:end_idx].detach())
        return new_mems

    def forward(self, data, target, *mems):
        mems = list(mems) if mems else self.init_mems()
        qlen, bsz = data.size()
        mlen = mems[0].size(0) if mems[0].numel() else 0
        klen = mlen + qlen
        core = self.word_emb(data) * D_MODEL ** 0.5
        mask = torch.triu(torch.ones(qlen, klen, device=data.device, dtype=torch.bool), 1 + mlen)[:, :, None]
        pos_seq = torch.arange(klen - 1, -1, -1.0, device=data.device)
        pos = self.drop(self.pos_emb(pos_seq))
        core = self.drop(core)
        hids = [core]
        for i, layer in enumerate(self.layers):
            core = layer(core, pos, self.r_w_bias, self.r_r_bias, mask, mems[i] if mlen else None)
            hids.append(core)
        core = self.drop(core)
        new_mems = self._update_mems(hids, mems, mlen, qlen)
        with torch.autocast(data.device.type, enabled=False):
            loss = self.crit(core.view(-1, D_MODEL).float(), target.reshape(-1)).loss
        return loss, new_mems


def zipf(n, seed):
    g = torch.Generator().manual_seed(seed)
    return (VOCAB ** torch.rand(n, generator=g)).long().clamp(max=VOCAB - 1)


tr_iter = LMOrderedIterator(zipf(N_TOKENS, 0), BATCH, TGT_LEN, device)
va_iter = LMOrderedIterator(zipf(EVAL_BATCH * 1024, 1), EVAL_BATCH, EVAL_TGT_LEN, device)

model = MemTransformerLM().to(device)
print("#params", sum(p.nelement() for p in model.parameters()))
optimizer = torch.optim.Adam(model.parameters(), lr=LR)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, MAX_STEP, eta_min=1e-6)
work_dir = tempfile.mkdtemp()


def evaluate():
    model.eval()
    total, n = 0.0, 0
    mems = tuple()
    with torch.no_grad():
        for data, target in va_iter:
            with torch.autocast(device.type, dtype=torch.bfloat16):
                loss, mems = model(data, target, *mems)
            total += loss.item() * data.size(0)
            n += data.size(0)
    model.train()
    return total / n


step, train_loss, best = 0, 0.0, None
start = time.time()
while step < MAX_STEP:
    mems = tuple()
    for data, target in tr_iter:
        model.zero_grad()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss, mems = model(data, target, *mems)
        loss.backward()
        train_loss += loss.float().item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        scheduler.step()
        step += 1
        if step % 12 == 0:
            print(f"| step {step:4d} | lr {optimizer.param_groups[0]['lr']:.2e} | loss {train_loss / 12:.2f} | {time.time() - start:.1f}s")
            train_loss = 0.0
        if step % 36 == 0:
            val = evaluate()
            print(f"| eval at {step} | valid ppl {math.exp(min(val, 20)):.1f}")
            if best is None or val < best:
                best = val
                torch.save(model, os.path.join(work_dir, "model.pt"))
                torch.save(optimizer.state_dict(), os.path.join(work_dir, "optimizer.pt"))
        if step == MAX_STEP:
            break

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
