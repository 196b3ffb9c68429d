"""Decision Transformer for Atari-like frames (after kzl/decision-transformer), torch.compile for training, rollouts with a
growing context for evaluation."""
import math
import os
import tempfile
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

CONTEXT = 30
BATCH = 64
EPOCHS = 2
N_STEPS = 4000
N_SAMPLES = 1280
ACTIONS = 6
EVAL_STEPS = 50
LR = 6e-4
device = "cuda"


@dataclass
class GPTConfig:
    vocab_size: int = ACTIONS
    block_size: int = CONTEXT * 3
    n_layer: int = 6
    n_head: int = 8
    n_embd: int = 256
    max_timestep: int = 1024
    pdrop: float = 0.1


class CausalSelfAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(c.n_embd, c.n_embd) for _ in range(3))
        self.attn_drop, self.resid_drop = nn.Dropout(c.pdrop), nn.Dropout(c.pdrop)
        self.proj = nn.Linear(c.n_embd, c.n_embd)
        self.register_buffer("mask", torch.tril(torch.ones(c.block_size + 1, c.block_size + 1)).view(1, 1, c.block_size + 1, c.block_size + 1))
        self.n_head = c.n_head

    def forward(self, x):
        B, T, C = x.size()
        k = self.key(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = self.query(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = self.value(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float('-inf'))
        att = self.attn_drop(F.softmax(att, dim=-1))
        y = (att @ v).transpose(1, 2).contiguous().view(B, T, C)
        return self.resid_drop(self.proj(y))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(c.n_embd), nn.LayerNorm(c.n_embd)
        self.attn = CausalSelfAttention(c)
        self.mlp = nn.Sequential(nn.Linear(c.n_embd, 4 * c.n_embd), nn.GELU(), nn.Linear(4 * c.n_embd, c.n_embd), nn.Dropout(c.pdrop))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class DecisionTransformer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.pos_emb = nn.Parameter(torch.zeros(1, c.block_size + 1, c.n_embd))
        self.global_pos_emb = nn.Parameter(torch.zeros(1, c.max_timestep + 1, c.n_embd))
        self.drop = nn.Dropout(c.pdrop)
        self.blocks = nn.Sequential(*[Block(c) for _ in range(c.n_layer)])
        self.ln_f = nn.LayerNorm(c.n_embd)
        self.head = nn.Linear(c.n_embd, c.vocab_size, bias=False)
        self.state_encoder = nn.Sequential(nn.Conv2d(4, 32, 8, stride=4), nn.ReLU(), nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(),
                                           nn.Conv2d(64, 64, 3, stride=1), nn.ReLU(), nn.Flatten(), nn.Linear(3136, c.n_embd), nn.Tanh())
        self.ret_emb = nn.Sequential(nn.Linear(1, c.n_embd), nn.Tanh())
        self.action_embeddings = nn.Sequential(nn.Embedding(c.vocab_size, c.n_embd), nn.Tanh())
        self.apply(self._init_weights)

    def _init_weights(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            m.weight.data.normal_(mean=0.0, std=0.02)
            if isinstance(m, nn.Linear) and m.bias is not None:
                m.bias.data.zero_()

    def configure_optimizers(self, lr, weight_decay=0.1):
        decay = [p for n, p in self.named_parameters() if p.ndim >= 2 and 'emb' not in n]
        rest = [p for n, p in self.named_parameters() if not (p.ndim >= 2 and 'emb' not in n)]
        return torch.optim.AdamW([{"params": decay, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}],
                                 lr=lr, betas=(0.9, 0.95))

    def forward(self, states, actions, targets=None, rtgs=None, timesteps=None):
        B, T = states.shape[:2]
        s = self.state_encoder(states.reshape(-1, 4, 84, 84).float()).reshape(B, T, self.c.n_embd)
        r = self.ret_emb(rtgs.float())
        a = self.action_embeddings(actions.squeeze(-1))
        tokens = torch.stack([r, s, a], dim=2).reshape(B, 3 * T, self.c.n_embd)
        gpe = self.global_pos_emb.expand(B, -1, -1).gather(1, timesteps.repeat(1, 1, self.c.n_embd))
        x = self.drop(tokens + gpe + self.pos_emb[:, :3 * T])
        x = self.ln_f(self.blocks(x))
        logits = self.head(x)[:, 1::3]
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)), targets.reshape(-1))
        return logits, loss


class StateActionReturnDataset(Dataset):
    def __init__(self, n_samples, seed):
        rng = np.random.default_rng(seed)
        self.obs = rng.integers(0, 255, (N_STEPS, 84, 84), dtype=np.uint8)
        self.actions = rng.integers(0, ACTIONS, N_STEPS)
        for t in range(N_STEPS):
            self.obs[t, 10 * self.actions[t]:10 * self.actions[t] + 8] = 255
        self.rtg = rng.random(N_STEPS)[::-1].cumsum()[::-1].copy() / 50
        self.starts = rng.integers(4, N_STEPS - CONTEXT - 1, n_samples)

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, i):
        s = int(self.starts[i])
        frames = np.stack([self.obs[s - k:s - k + CONTEXT] for k in range(4)], 1)
        states = torch.from_numpy(frames).float().div_(255).reshape(CONTEXT, -1)
        actions = torch.from_numpy(self.actions[s:s + CONTEXT]).long().unsqueeze(1)
        rtgs = torch.from_numpy(self.rtg[s:s + CONTEXT]).float().unsqueeze(1)
        return states, actions, rtgs, torch.tensor([[s % 900]], dtype=torch.long)


class FakeEnv:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        return self.step(0)[0]

    def step(self, action):
        self.want = int(self.rng.integers(ACTIONS))
        obs = torch.from_numpy(self.rng.random((4, 84, 84), dtype=np.float32))
        obs[:, 10 * self.want:10 * self.want + 8] = 1.0
        return obs, float(action == self.want)


@torch.no_grad()
def get_returns(model, env, ret):
    model.eval()
    state = env.reset().reshape(1, 1, -1).to(device)
    all_states, actions, rtgs = state, [], [ret]
    total = 0.0
    for j in range(EVAL_STEPS):
        T = min(all_states.shape[1], CONTEXT)
        a = torch.tensor((actions + [0])[-T:], dtype=torch.long, device=device).view(1, -1, 1)
        r = torch.tensor(rtgs[-T:], device=device).view(1, -1, 1)
        ts = torch.full((1, 1, 1), min(j, 1023), dtype=torch.long, device=device)
        logits, _ = model(all_states[:, -T:], a, None, r, ts)
        action = torch.multinomial(F.softmax(logits[:, -1], dim=-1), 1).item()
        obs, reward = env.step(action)
        total += reward
        actions.append(action)
        rtgs.append(rtgs[-1] - reward)
        all_states = torch.cat([all_states, obs.reshape(1, 1, -1).to(device)], dim=1)
    model.train()
    return total


def main():
    torch.manual_seed(123)
    model = DecisionTransformer(GPTConfig()).to(device)
    print("number of parameters: %.2fM" % (sum(p.numel() for p in model.parameters()) / 1e6))
    optimizer = model.configure_optimizers(LR)
    compiled = torch.compile(model)
    loader = DataLoader(StateActionReturnDataset(N_SAMPLES, 0), BATCH, shuffle=True, drop_last=True, num_workers=1, pin_memory=True)
    total = EPOCHS * len(loader)
    out = tempfile.mkdtemp()
    step = 0
    for epoch in range(EPOCHS):
        model.train()
        for x, y, r, t in loader:
            x, y, r, t = x.to(device), y.to(device), r.to(device), t.to(device)
            logits, loss = compiled(x, y, y, r, t)
            model.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
            mult = min(1.0, step / 10) * max(0.1, 0.5 * (1.0 + math.cos(math.pi * step / total)))
            for g in optimizer.param_groups:
                g['lr'] = LR * mult
            if step % 8 == 0:
                print(f"epoch {epoch} iter {step}: train loss {loss.item():.5f}. lr {LR * mult:e}")
        returns = [get_returns(model, FakeEnv(s), 20.0) for s in range(3)]
        print(f"epoch {epoch} eval return {np.mean(returns):.2f}")
        torch.save(model.state_dict(), os.path.join(out, f"dt_{epoch}.pt"))


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
