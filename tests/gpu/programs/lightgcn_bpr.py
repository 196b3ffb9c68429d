# LightGCN: propagation of user and item embeddings over the interaction graph, BPR loss, full ranking every few epochs.
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

USERS = int(os.environ.get("USERS", 120_000))
ITEMS = int(os.environ.get("ITEMS", 60_000))
PER_USER = int(os.environ.get("PER_USER", 40))
DIM = int(os.environ.get("DIM", 256))
LAYERS = 3
BATCH = int(os.environ.get("BATCH", 8192))
STEPS = int(os.environ.get("STEPS", 120))   # per epoch
EPOCHS = int(os.environ.get("EPOCHS", 4))
EVAL_USERS = int(os.environ.get("EVAL_USERS", 8192))
EVAL_CHUNK = 1024
REG = 1e-4

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(2024)

# interactions: each user has a taste (a block of items); items inside a block follow a power law
taste = torch.randint(0, 50, (USERS, 1))
rank = (ITEMS // 50 * torch.rand(USERS, PER_USER + 2) ** 3).long()
block = torch.where(torch.rand(USERS, PER_USER + 2) < 0.8, taste, torch.randint(0, 50, (USERS, PER_USER + 2)))
history = (block * (ITEMS // 50) + rank).clamp(max=ITEMS - 1)
train_items, test_items = history[:, :PER_USER].to(device), history[:, PER_USER:].to(device)


def normalised_adjacency():
    u = torch.arange(USERS, device=device).repeat_interleave(PER_USER)
    i = train_items.reshape(-1) + USERS
    rows, cols = torch.cat([u, i]), torch.cat([i, u])
    n = USERS + ITEMS
    adj = torch.sparse_coo_tensor(torch.stack([rows, cols]), torch.ones(len(rows), device=device), (n, n)).coalesce()
    r, c = adj.indices()
    deg = torch.zeros(n, device=device).index_add_(0, r, torch.ones_like(adj.values()))
    inv = deg.clamp(min=1).rsqrt()
    return torch.sparse_coo_tensor(adj.indices(), inv[r] * inv[c], (n, n)).coalesce()


class LightGCN(nn.Module):
    def __init__(self, adj):
        super().__init__()
        self.embedding = nn.Embedding(USERS + ITEMS, DIM)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.adj = adj

    def propagate(self):
        x = self.embedding.weight
        layers = [x]
        for _ in range(LAYERS):
            x = torch.sparse.mm(self.adj, x)
            layers.append(x)
        out = torch.stack(layers, 1).mean(1)
        return out[:USERS], out[USERS:]

    def forward(self, users, pos, neg):
        u_all, i_all = self.propagate()
        u, p, n = u_all[users], i_all[pos], i_all[neg]
        bpr = F.softplus((u * n).sum(1) - (u * p).sum(1)).mean()
        w = self.embedding.weight
        reg = (w[users].pow(2).sum() + w[USERS + pos].pow(2).sum() + w[USERS + neg].pow(2).sum()) / (2 * len(users))
        return bpr + REG * reg, bpr


@torch.no_grad()
def recall_ndcg(model, k=20):
    u_all, i_all = model.propagate()
    chosen = torch.randperm(USERS, device=device)[:EVAL_USERS]
    recall = ndcg = 0.0
    gain = 1 / torch.log2(torch.arange(2, k + 2, device=device).float())
    for users in chosen.split(EVAL_CHUNK):
        scores = u_all[users] @ i_all.t()
        scores.scatter_(1, train_items[users], float("-inf"))
        top = scores.topk(k, dim=1).indices
        hit = (top[:, :, None] == test_items[users][:, None]).any(-1).float()
        recall += (hit.sum(1) / test_items.shape[1]).sum().item()
        ndcg += ((hit * gain).sum(1) / gain[:test_items.shape[1]].sum()).sum().item()
    return recall / len(chosen), ndcg / len(chosen)


model = LightGCN(normalised_adjacency()).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(1, EPOCHS + 1):
    total = 0.0
    for _ in range(STEPS):
        users = torch.randint(0, USERS, (BATCH,), device=device)
        pos = train_items[users, torch.randint(0, PER_USER, (BATCH,), device=device)]
        neg = torch.randint(0, ITEMS, (BATCH,), device=device)
        loss, bpr = model(users, pos, neg)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += bpr.item()
    line = f"epoch {epoch} bpr {total / STEPS:.4f}"
    if epoch % 2 == 0:
        r, n = recall_ndcg(model)
        line += f" recall@20 {r:.4f} ndcg@20 {n:.4f}"
    print(line, flush=True)

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
