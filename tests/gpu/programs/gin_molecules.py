# GIN with virtual node on molecule-like graphs, plain PyTorch (no PyG).
import random
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    n_train: int = 24000
    n_valid: int = 3000
    batch_size: int = 1024
    hidden: int = 512
    layers: int = 5
    tasks: int = 128
    epochs: int = 3
    lr: float = 1e-3
    dropout: float = 0.5


cfg = Config()
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
random.seed(0)


def random_molecule():
    n = max(6, min(60, int(random.gauss(26, 8))))
    atoms = torch.randint(0, 119, (n,))
    src = torch.arange(1, n)
    dst = (torch.rand(n - 1) * src).long()
    rings = random.randint(0, 4)
    src = torch.cat([src, torch.randint(0, n, (rings,))])
    dst = torch.cat([dst, torch.randint(0, n, (rings,))])
    edge_index = torch.stack([torch.cat([src, dst]), torch.cat([dst, src])])
    bonds = torch.randint(0, 5, (src.numel(),)).repeat(2)
    y = (torch.rand(cfg.tasks) < 0.1).float()
    return atoms, edge_index, bonds, y


def collate(graphs):
    atoms, edges, bonds, ys, batch = [], [], [], [], []
    offset = 0
    for k, (a, e, b, y) in enumerate(graphs):
        atoms.append(a)
        edges.append(e + offset)
        bonds.append(b)
        ys.append(y)
        batch.append(torch.full((len(a),), k))
        offset += len(a)
    return torch.cat(atoms), torch.cat(edges, 1), torch.cat(bonds), torch.stack(ys), torch.cat(batch)


class GINConv(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bond = nn.Embedding(5, dim)
        self.eps = nn.Parameter(torch.zeros(1))
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.BatchNorm1d(2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))

    def forward(self, x, edge_index, bonds):
        msg = F.relu(x[edge_index[0]] + self.bond(bonds))
        agg = torch.zeros_like(x).index_add_(0, edge_index[1], msg)
        return self.mlp((1 + self.eps) * x + agg)


class GIN(nn.Module):
    def __init__(self):
        super().__init__()
        d = cfg.hidden
        self.atom = nn.Embedding(119, d)
        self.virtual = nn.Embedding(1, d)
        self.convs = nn.ModuleList(GINConv(d) for _ in range(cfg.layers))
        self.norms = nn.ModuleList(nn.BatchNorm1d(d) for _ in range(cfg.layers))
        self.vmlps = nn.ModuleList(
            nn.Sequential(nn.Linear(d, 2 * d), nn.BatchNorm1d(2 * d), nn.ReLU(), nn.Linear(2 * d, d),
                          nn.BatchNorm1d(d), nn.ReLU())
            for _ in range(cfg.layers - 1))
        self.out = nn.Linear(d, cfg.tasks)

    def forward(self, atoms, edge_index, bonds, batch, num_graphs):
        h = self.atom(atoms)
        v = self.virtual(torch.zeros(num_graphs, dtype=torch.long, device=atoms.device))
        for i, conv in enumerate(self.convs):
            h_in = h + v[batch]
            h = self.norms[i](conv(h_in, edge_index, bonds))
            if i < cfg.layers - 1:
                h = F.relu(h)
            h = F.dropout(h, cfg.dropout, self.training) + h_in
            if i < cfg.layers - 1:
                pooled = torch.zeros_like(v).index_add_(0, batch, h_in)
                v = v + F.dropout(self.vmlps[i](pooled + v), cfg.dropout, self.training)
        pooled = h.new_zeros(num_graphs, cfg.hidden).index_add_(0, batch, h)
        count = torch.bincount(batch, minlength=num_graphs).clamp(min=1).unsqueeze(1)
        return self.out(pooled / count)


train_set = [random_molecule() for _ in range(cfg.n_train)]
valid_set = [random_molecule() for _ in range(cfg.n_valid)]
train_loader = torch.utils.data.DataLoader(train_set, cfg.batch_size, shuffle=True, collate_fn=collate, num_workers=2)
valid_loader = torch.utils.data.DataLoader(valid_set, cfg.batch_size, collate_fn=collate)

model = GIN().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(1, cfg.epochs + 1):
    model.train()
    for atoms, edge_index, bonds, y, batch in train_loader:
        atoms, edge_index, bonds = atoms.to(device), edge_index.to(device), bonds.to(device)
        y, batch = y.to(device), batch.to(device)
        optimizer.zero_grad()
        pred = model(atoms, edge_index, bonds, batch, y.size(0))
        loss = criterion(pred, y)
        loss.backward()
        optimizer.step()

    model.eval()
    preds, targets = [], []
    with torch.no_grad():
        for atoms, edge_index, bonds, y, batch in valid_loader:
            p = model(atoms.to(device), edge_index.to(device), bonds.to(device), batch.to(device), y.size(0))
            preds.append(p.sigmoid().cpu())
            targets.append(y)
    preds, targets = torch.cat(preds), torch.cat(targets)
    acc = ((preds > 0.5) == targets.bool()).float().mean()
    print(f"Epoch {epoch:02d} loss {loss.item():.4f} valid acc {acc:.4f}")

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
