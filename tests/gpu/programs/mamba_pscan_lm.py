"""Mamba language model in plain PyTorch with a parallel scan (no CUDA kernels needed)."""
import argparse
import math
import os
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--d_model", type=int, default=512)
parser.add_argument("--n_layer", type=int, default=8)
parser.add_argument("--d_state", type=int, default=16)
parser.add_argument("--seq_len", type=int, default=512)
parser.add_argument("--batch_size", type=int, default=4)
parser.add_argument("--vocab", type=int, default=16000)
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--eval_every", type=int, default=20)
parser.add_argument("--lr", type=float, default=6e-4)
args = parser.parse_args()
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(1234)


class PScan(torch.autograd.Function):
    """h_t = A_t * h_{t-1} + X_t over dim 1, by recursive doubling."""

    @staticmethod
    def _scan(A, X):
        L = X.size(1)
        d = 1
        while d < L:
            X[:, d:] = X[:, d:] + A[:, d:] * X[:, :-d]
            A[:, d:] = A[:, d:] * A[:, :-d]
            d *= 2
        return X

    @staticmethod
    def forward(ctx, A, X):
        H = PScan._scan(A.clone(), X.clone())
        ctx.save_for_backward(A, H)
        return H

    @staticmethod
    def backward(ctx, grad):
        A, H = ctx.saved_tensors
        A_next = torch.cat([A[:, 1:], torch.zeros_like(A[:, :1])], dim=1).flip(1)
        g = PScan._scan(A_next, grad.flip(1).clone()).flip(1)
        H_prev = torch.cat([torch.zeros_like(H[:, :1]), H[:, :-1]], dim=1)
        return g * H_prev, g


class RMSNorm(nn.Module):
    def __init__(self, d, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class MambaBlock(nn.Module):
    def __init__(self, d_model, d_state=16, expand=2, d_conv=4):
        super().__init__()
        self.d_inner = d_model * expand
        self.d_state = d_state
        self.dt_rank = math.ceil(d_model / 16)
        self.in_proj = nn.Linear(d_model, 2 * self.d_inner, bias=False)
        self.conv1d = nn.Conv1d(self.d_inner, self.d_inner, d_conv, groups=self.d_inner, padding=d_conv - 1)
        self.x_proj = nn.Linear(self.d_inner, self.dt_rank + 2 * d_state, bias=False)
        self.dt_proj = nn.Linear(self.dt_rank, self.d_inner)
        A = torch.arange(1, d_state + 1, dtype=torch.float32).repeat(self.d_inner, 1)
        self.A_log = nn.Parameter(torch.log(A))
        self.D = nn.Parameter(torch.ones(self.d_inner))
        self.out_proj = nn.Linear(self.d_inner, d_model, bias=False)

    def forward(self, x):
        L = x.size(1)
        x, z = self.in_proj(x).chunk(2, dim=-1)
        x = self.conv1d(x.transpose(1, 2))[:, :, :L].transpose(1, 2)
        x = F.silu(x)
        y = self.ssm(x)
        return self.out_proj(y * F.silu(z))

    def ssm(self, x):
        A = -torch.exp(self.A_log.float())
        delta, B, C = self.x_proj(x).split([self.dt_rank, self.d_state, self.d_state], dim=-1)
        delta = F.softplus(self.dt_proj(delta))
        deltaA = torch.exp(delta.unsqueeze(-1) * A)
        BX = delta.unsqueeze(-1) * B.unsqueeze(2) * x.unsqueeze(-1)
        hs = PScan.apply(deltaA, BX)
        y = (hs @ C.unsqueeze(-1)).squeeze(-1)
        return y + self.D * x


class MambaLM(nn.Module):
    def __init__(self, vocab, d_model, n_layer, d_state):
        super().__init__()
        self.embed = nn.Embedding(vocab, d_model)
        self.layers = nn.ModuleList([MambaBlock(d_model, d_state) for _ in range(n_layer)])
        self.norms = nn.ModuleList([RMSNorm(d_model) for _ in range(n_layer)])
        self.norm_f = RMSNorm(d_model)
        self.head = nn.Linear(d_model, vocab, bias=False)
        self.embed.weight = self.head.weight
        nn.init.normal_(self.head.weight, std=0.02)

    def forward(self, idx, targets=None):
        x = self.embed(idx)
        for norm, layer in zip(self.norms, self.layers):
            x = x + layer(norm(x))
        logits = self.head(self.norm_f(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


class TokenDataset(Dataset):
    def __init__(self, n_tokens, seq_len, vocab, seed):
        g = torch.Generator().manual_seed(seed)
        u = torch.rand(n_tokens, generator=g)
        self.data = (vocab ** u).long().clamp(max=vocab - 1)
        self.seq_len = seq_len

    def __len__(self):
        return (len(self.data) - 1) // self.seq_len

    def __getitem__(self, i):
        s = i * self.seq_len
        return self.data[s:s + self.seq_len], self.data[s + 1:s + self.seq_len + 1]


train_loader = DataLoader(TokenDataset(400_000, args.seq_len, args.vocab, 0), batch_size=args.batch_size, shuffle=True, drop_last=True)
val_loader = DataLoader(TokenDataset(20_000, args.seq_len, args.vocab, 1), batch_size=args.batch_size)

model = MambaLM(args.vocab, args.d_model, args.n_layer, args.d_state).to(device)
print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f}M parameters")
optim = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=0.1)
sched = torch.optim.lr_scheduler.LambdaLR(
    optim, lambda s: min(1.0, (s + 1) / 10) * 0.5 * (1 + math.cos(math.pi * min(1.0, s / args.steps))))


@torch.no_grad()
def evaluate():
    model.eval()
    losses = []
    for x, y in val_loader:
        _, loss = model(x.to(device), y.to(device))
        losses.append(loss.item())
    model.train()
    return sum(losses) / len(losses)


step = 0
best = float("inf")
outdir = tempfile.mkdtemp()
t0 = time.time()
while step < args.steps:
    for x, y in train_loader:
        x, y = x.to(device), y.to(device)
        _, loss = model(x, y)
        optim.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optim.step()
        sched.step()
        step += 1
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.3f} grad {norm.item():.2f} {time.time() - t0:.1f}s")
        if step % args.eval_every == 0:
            val = evaluate()
            print(f"step {step} val {val:.3f} ppl {math.exp(val):.1f}")
            if val < best:
                best = val
                torch.save(model.state_dict(), os.path.join(outdir, "best.pt"))
        if step >= args.steps:
            break

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
