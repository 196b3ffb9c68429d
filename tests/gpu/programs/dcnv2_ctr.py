"""Click-through rate prediction with DCN-V2 on Criteo-shaped data."""
import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import log_loss, roc_auc_score
from torch.utils.data import DataLoader, TensorDataset

NUM_DENSE = 13
CARDINALITIES = [1460, 583, 1000000, 700000, 305, 24, 12517, 633, 3, 93145, 5683, 900000, 3194, 27,
                 14992, 800000, 10, 5652, 2173, 4, 850000, 18, 15, 286181, 105, 142572]


class CrossLayerV2(nn.Module):
    def __init__(self, dim, rank):
        super().__init__()
        self.u = nn.Linear(dim, rank, bias=False)
        self.v = nn.Linear(rank, dim)

    def forward(self, x0, x):
        return x0 * self.v(self.u(x)) + x


class DCNV2(nn.Module):
    def __init__(self, dim=32, n_cross=3, rank=256, mlp=(1024, 1024, 512), dropout=0.1):
        super().__init__()
        self.register_buffer("offsets", torch.tensor(np.cumsum([0] + CARDINALITIES[:-1])))
        self.table = nn.Embedding(sum(CARDINALITIES), dim)
        nn.init.normal_(self.table.weight, std=0.01)
        width = NUM_DENSE + dim * len(CARDINALITIES)
        self.cross = nn.ModuleList(CrossLayerV2(width, rank) for _ in range(n_cross))
        layers, prev = [], width
        for m in mlp:
            layers += [nn.Linear(prev, m), nn.BatchNorm1d(m), nn.ReLU(), nn.Dropout(dropout)]
            prev = m
        self.deep = nn.Sequential(*layers)
        self.out = nn.Linear(width + prev, 1)

    def forward(self, dense, sparse):
        emb = self.table(sparse + self.offsets).flatten(1)
        x0 = torch.cat([dense, emb], 1)
        x = x0
        for layer in self.cross:
            x = layer(x0, x)
        return self.out(torch.cat([x, self.deep(x0)], 1)).squeeze(1)


def synth(n, seed):
    rng = np.random.default_rng(seed)
    dense = np.log1p(rng.exponential(10.0, (n, NUM_DENSE))).astype(np.float32)
    sparse = np.stack([np.minimum(rng.zipf(1.2, n) - 1, c - 1) for c in CARDINALITIES], 1)
    y = (rng.random(n) < 0.25).astype(np.float32)
    return TensorDataset(torch.from_numpy(dense), torch.from_numpy(sparse.astype(np.int64)), torch.from_numpy(y))


def evaluate(model, loader, device):
    model.eval()
    ys, ps = [], []
    with torch.inference_mode():
        for dense, sparse, y in loader:
            p = torch.sigmoid(model(dense.to(device), sparse.to(device)))
            ps.append(p.cpu().numpy())
            ys.append(y.numpy())
    y, p = np.concatenate(ys), np.concatenate(ps)
    return roc_auc_score(y, p), log_loss(y, p, labels=[0, 1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=16384)
    parser.add_argument("--rows", type=int, default=1500000)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    device = torch.device("cuda")

    train_loader = DataLoader(synth(args.rows, 0), batch_size=args.batch_size, shuffle=True, num_workers=4, pin_memory=True)
    val_loader = DataLoader(synth(args.rows // 10, 1), batch_size=args.batch_size * 4)
    model = DCNV2(args.dim).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(args.epochs):
        model.train()
        for i, (dense, sparse, y) in enumerate(train_loader):
            dense = dense.to(device, non_blocking=True)
            sparse = sparse.to(device, non_blocking=True)
            y = y.to(device, non_blocking=True)
            loss = criterion(model(dense, sparse), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if i % 25 == 0:
                print(f"epoch {epoch} it {i} loss {loss.item():.4f}")
        auc, ll = evaluate(model, val_loader, device)
        print(f"epoch {epoch} AUC {auc:.4f} logloss {ll:.4f}")
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
