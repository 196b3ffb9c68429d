# SPDX-License-Identifier: Apache-2.0
"""Masked language model whose sequence length changes every step (from a fixed list), relative position bias, Adafactor by hand."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
LENGTHS = [256, 384, 128, 512, 320, 448]


class Adafactor(torch.optim.Optimizer):
    """Factored second moments, no first moment, updates clipped by their root mean square."""

    def __init__(self, params, lr=1e-3, eps=1e-30, clip=1.0):
        super().__init__(params, dict(lr=lr, eps=eps, clip=clip))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                g, state = p.grad.float(), self.state[p]
                state["step"] = state.get("step", 0) + 1
                beta = 1 - state["step"] ** -0.8
                sq = g * g + group["eps"]
                if p.dim() >= 2:
                    if "row" not in state:
                        state["row"], state["col"] = sq.new_zeros(sq.shape[:-1]), sq.new_zeros(sq.shape[:-2] + sq.shape[-1:])
                    state["row"].mul_(beta).add_(sq.mean(-1), alpha=1 - beta)
                    state["col"].mul_(beta).add_(sq.mean(-2), alpha=1 - beta)
                    r = (state["row"] / state["row"].mean(-1, keepdim=True)).rsqrt().unsqueeze(-1)
                    update = g * r * state["col"].rsqrt().unsqueeze(-2)
                else:
                    if "v" not in state:
                        state["v"] = torch.zeros_like(g)
                    state["v"].mul_(beta).add_(sq, alpha=1 - beta)
                    update = g * state["v"].rsqrt()
                update.div_((update.pow(2).mean().sqrt() / group["clip"]).clamp(min=1.0))
                p.add_(update, alpha=-group["lr"])


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wi, self.wo = nn.Linear(width, 5 * width), nn.Linear(5 * width // 2, width)

    def forward(self, x, bias):
        b, t, w = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / (w // self.heads) ** 0.5 + bias
        a = F.dropout(scores.softmax(-1), 0.1, self.training).to(v.dtype)
        x = x + self.out((a @ v).transpose(1, 2).reshape(b, t, w))
        gate, h = self.wi(self.n2(x)).chunk(2, -1)
        return x + self.wo(F.gelu(gate) * h)


class Encoder(nn.Module):
    def __init__(self, vocab, width, layers, heads):
        super().__init__()
        self.embed, self.bias = nn.Embedding(vocab, width), nn.Embedding(257, heads)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab)

    def forward(self, ids):
        at = torch.arange(ids.shape[1], device=ids.device)
        bias = self.bias((at[None] - at[:, None]).clamp(-128, 128) + 128).permute(2, 0, 1)
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, bias)
        return self.head(self.norm(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=12)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    vocab = 500 if SMALL else 28000
    model = (Encoder(vocab, 64, 2, 4) if SMALL else Encoder(vocab, 640, 10, 10)).to(device)
    optimizer = Adafactor(model.parameters())
    for length in LENGTHS:
        length = length // 8 if SMALL else length
        ids = torch.randint(4, vocab, (args.batch_size, length))
        labels = ids.clone()
        masked = torch.rand(ids.shape) < 0.15
        labels[~masked] = -100
        ids[masked] = 3
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(ids.to(device)).flatten(0, 1), labels.to(device).flatten(), ignore_index=-100)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(length, loss.item())


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
