# SPDX-License-Identifier: Apache-2.0
"""Policy gradient: attention model for the travelling salesman, REINFORCE with the mean of many starts as the baseline (POMO), sampling decoder, fp32; no validation."""
import argparse
import math
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"


class TSP(Dataset):
    def __init__(self, n, nodes):
        self.data = torch.rand(n, nodes, 2)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i]


class EncoderLayer(nn.Module):
    def __init__(self, d, heads, ff):
        super().__init__()
        self.mha = nn.MultiheadAttention(d, heads, batch_first=True)
        self.bn1, self.bn2 = nn.BatchNorm1d(d), nn.BatchNorm1d(d)
        self.ff = nn.Sequential(nn.Linear(d, ff), nn.ReLU(), nn.Linear(ff, d))

    def norm(self, bn, x):
        return bn(x.reshape(-1, x.size(-1))).view_as(x)

    def forward(self, x):
        x = self.norm(self.bn1, x + self.mha(x, x, x, need_weights=False)[0])
        return self.norm(self.bn2, x + self.ff(x))


class AttentionModel(nn.Module):
    def __init__(self, d=128, heads=8, layers=6, ff=512, clip=10.0):
        super().__init__()
        self.d, self.heads, self.clip = d, heads, clip
        self.init_embed = nn.Linear(2, d)
        self.encoder = nn.Sequential(*[EncoderLayer(d, heads, ff) for _ in range(layers)])
        self.q_graph, self.q_first, self.q_last = (nn.Linear(d, d, bias=False) for _ in range(3))
        self.wk, self.wv, self.wl, self.wo = (nn.Linear(d, d, bias=False) for _ in range(4))

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, -1).transpose(1, 2)

    def forward(self, coords, starts):
        """Rolls out `starts` tours for each instance at once; returns lengths and log-likelihoods (batch, starts)."""
        b, n, _ = coords.shape
        h = self.encoder(self.init_embed(coords))
        k, v, logit_k = self.split(self.wk(h)), self.split(self.wv(h)), self.wl(h)
        graph = self.q_graph(h.mean(1, keepdim=True))
        first = torch.arange(starts, device=coords.device).expand(b, starts)
        visited = torch.zeros(b, starts, n, dtype=torch.bool, device=coords.device).scatter(2, first[..., None], True)
        pick = lambda idx: h.gather(1, idx[..., None].expand(-1, -1, self.d))
        q_first = self.q_first(pick(first))
        last, tour, log_p = first, [first], 0
        for _ in range(n - 1):
            q = self.split(graph + q_first + self.q_last(pick(last)))
            score = q @ k.transpose(2, 3) / math.sqrt(self.d // self.heads)
            att = score.masked_fill(visited[:, None], -math.inf).softmax(-1)
            glimpse = self.wo((att @ v).transpose(1, 2).reshape(b, starts, self.d))
            logits = self.clip * torch.tanh(glimpse @ logit_k.transpose(1, 2) / math.sqrt(self.d))
            logp = logits.masked_fill(visited, -math.inf).log_softmax(-1)
            with torch.no_grad():
                last = torch.multinomial(logp.exp().view(b * starts, n), 1).view(b, starts)
            log_p = log_p + logp.gather(2, last[..., None]).squeeze(2)
            visited = visited.scatter(2, last[..., None], True)
            tour.append(last)
        tour = torch.stack(tour, 2)
        path = coords[:, None].expand(-1, starts, -1, -1).gather(2, tour[..., None].expand(-1, -1, -1, 2))
        length = (path - path.roll(-1, 2)).norm(dim=-1).sum(2)
        return length, log_p


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--nodes", type=int, default=50)
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--max-grad-norm", type=float, default=1.0)
    args = ap.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(1234)
    if SMALL:
        args.batch_size, args.nodes = min(args.batch_size, 4), 6
    model = (AttentionModel(32, 4, 2, 64) if SMALL else AttentionModel()).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, weight_decay=1e-6)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.98)
    for epoch in range(args.epochs):
        # fresh instances every epoch
        loader = DataLoader(TSP(args.batch_size * (2 if SMALL else 8), args.nodes), batch_size=args.batch_size)
        model.train()
        costs = []
        for coords in loader:
            length, log_p = model(coords.to(device), starts=args.nodes)
            advantage = length - length.mean(1, keepdim=True)
            loss = (advantage.detach() * log_p).mean()
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
            optimizer.step()
            costs.append(length.min(1).values.mean().item())
        scheduler.step()
        print(f"epoch {epoch}: tour {sum(costs) / len(costs):.3f}, grad norm {norm:.3f}")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
