"""
Train a small Llama-style model from scratch.
RMSNorm, rotary embeddings, grouped-query attention, SwiGLU; torch.compile and bf16.
"""
import math
import os
import tempfile
import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

# -----------------------------------------------------------------------------
batch_size = 16
max_seq_len = 512
dim = 512
n_layers = 8
n_heads = 8
n_kv_heads = 4
vocab_size = 32000
learning_rate = 5e-4
max_iters = 200
eval_interval = 100
eval_iters = 20
weight_decay = 1e-1
beta1, beta2 = 0.9, 0.95
grad_clip = 1.0
warmup_iters = 20
device = "cuda"
compile = True
# -----------------------------------------------------------------------------


@dataclass
class ModelArgs:
    dim: int = dim
    n_layers: int = n_layers
    n_heads: int = n_heads
    n_kv_heads: int = n_kv_heads
    vocab_size: int = vocab_size
    multiple_of: int = 32
    norm_eps: float = 1e-5
    max_seq_len: int = max_seq_len


class RMSNorm(nn.Module):
    def __init__(self, d, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return y.type_as(x) * self.weight


def rope_tables(head_dim, length, theta=10000.0):
    freqs = 1.0 / theta ** (torch.arange(0, head_dim, 2).float() / head_dim)
    angles = torch.outer(torch.arange(length).float(), freqs)
    return angles.cos(), angles.sin()


def apply_rope(x, cos, sin):
    x1, x2 = x.float().reshape(*x.shape[:-1], -1, 2).unbind(-1)
    cos, sin = cos[None, :, None], sin[None, :, None]
    out = torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1)
    return out.flatten(3).type_as(x)


class Attention(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.h, self.kv = a.n_heads, a.n_kv_heads
        self.hd = a.dim // a.n_heads
        self.wq = nn.Linear(a.dim, self.h * self.hd, bias=False)
        self.wk = nn.Linear(a.dim, self.kv * self.hd, bias=False)
        self.wv = nn.Linear(a.dim, self.kv * self.hd, bias=False)
        self.wo = nn.Linear(a.dim, a.dim, bias=False)

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        q = apply_rope(self.wq(x).view(b, t, self.h, self.hd), cos, sin)
        k = apply_rope(self.wk(x).view(b, t, self.kv, self.hd), cos, sin)
        v = self.wv(x).view(b, t, self.kv, self.hd)
        rep = self.h // self.kv
        k = k.repeat_interleave(rep, dim=2)
        v = v.repeat_interleave(rep, dim=2)
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(b, t, -1))


class FeedForward(nn.Module):
    def __init__(self, a):
        super().__init__()
        hidden = int(8 * a.dim / 3)
        hidden = a.multiple_of * ((hidden + a.multiple_of - 1) // a.multiple_of)
        self.w1 = nn.Linear(a.dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, a.dim, bias=False)
        self.w3 = nn.Linear(a.dim, hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.attn, self.ff = Attention(a), FeedForward(a)
        self.n1, self.n2 = RMSNorm(a.dim, a.norm_eps), RMSNorm(a.dim, a.norm_eps)

    def forward(self, x, cos, sin):
        x = x + self.attn(self.n1(x), cos, sin)
        return x + self.ff(self.n2(x))


class Transformer(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.tok = nn.Embedding(a.vocab_size, a.dim)
        self.blocks = nn.ModuleList(Block(a) for _ in range(a.n_layers))
        self.norm = RMSNorm(a.dim, a.norm_eps)
        self.out = nn.Linear(a.dim, a.vocab_size, bias=False)
        self.tok.weight = self.out.weight
        cos, sin = rope_tables(a.dim // a.n_heads, a.max_seq_len)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.apply(self._init)

    def _init(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.02)

    def forward(self, tokens, targets=None):
        t = tokens.size(1)
        h = self.tok(tokens)
        for block in self.blocks:
            h = block(h, self.cos[:t], self.sin[:t])
        logits = self.out(self.norm(h))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / warmup_iters
    ratio = (it - warmup_iters) / (max_iters - warmup_iters)
    return 0.5 * learning_rate * (1 + math.cos(math.pi * ratio))


torch.manual_seed(1337)
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
data_dir = tempfile.mkdtemp()
for split, n in (("train", 4_000_000), ("val", 400_000)):
    np.random.randint(0, vocab_size, n).astype(np.uint16).tofile(os.path.join(data_dir, f"{split}.bin"))


def get_batch(split):
    data = np.memmap(os.path.join(data_dir, f"{split}.bin"), dtype=np.uint16, mode="r")
    ix = torch.randint(len(data) - max_seq_len - 1, (batch_size,))
    x = torch.stack([torch.from_numpy(data[i:i + max_seq_len].astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy(data[i + 1:i + 1 + max_seq_len].astype(np.int64)) for i in ix])
    return x.to(device, non_blocking=True), y.to(device, non_blocking=True)


ctx = torch.amp.autocast(device_type=device, dtype=torch.bfloat16)
model = Transformer(ModelArgs()).to(device)
decay = [p for p in model.parameters() if p.dim() >= 2]
nodecay = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": weight_decay}, {"params": nodecay, "weight_decay": 0.0}],
                              lr=learning_rate, betas=(beta1, beta2), fused=True)
if compile:
    print("compiling the model... (takes a ~minute)")
    model = torch.compile(model)


@torch.no_grad()
def estimate_loss():
    out = {}
    model.eval()
    for split in ("train", "val"):
        losses = torch.zeros(eval_iters)
        for k in range(eval_iters):
            x, y = get_batch(split)
            with ctx:
                _, loss = model(x, y)
            losses[k] = loss.item()
        out[split] = losses.mean()
    model.train()
    return out


x, y = get_batch("train")
t0 = time.time()
for it in range(max_iters + 1):
    for group in optimizer.param_groups:
        group["lr"] = get_lr(it)
    if it % eval_interval == 0:
        losses = estimate_loss()
        print(f"step {it}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}")
    with ctx:
        _, loss = model(x, y)
    x, y = get_batch("train")
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if it % 20 == 0:
        print(f"{it} | loss {loss.item():.4f} | {time.time() - t0:.1f}s")

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
