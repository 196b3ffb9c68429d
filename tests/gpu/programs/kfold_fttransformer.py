# SPDX-License-Identifier: Apache-2.0
# 3-fold cross validation of an FT-Transformer on a table (churn-like data)
import os, argparse
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_classification
from sklearn.metrics import roc_auc_score, log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, Dataset, Subset

SMALL = os.environ.get('SMALL') == '1'
DEVICE = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
SEED = 42


def seed_everything(seed):
    np.random.seed(seed)
    torch.manual_seed(seed)


class TabularDataset(Dataset):
    def __init__(self, num, cat, y):
        self.num = torch.tensor(num, dtype=torch.float32)
        self.cat = torch.tensor(cat, dtype=torch.long)
        self.y = torch.tensor(y, dtype=torch.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.num[i], self.cat[i], self.y[i]


class Tokenizer(nn.Module):
    def __init__(self, n_num, cards, d):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_num, d) * 0.02)
        self.bias = nn.Parameter(torch.zeros(n_num, d))
        self.embs = nn.ModuleList([nn.Embedding(c, d) for c in cards])
        self.cls = nn.Parameter(torch.zeros(1, 1, d))

    def forward(self, num, cat):
        x = num.unsqueeze(-1) * self.weight + self.bias
        c = torch.stack([e(cat[:, i]) for i, e in enumerate(self.embs)], 1)
        return torch.cat([self.cls.expand(len(num), -1, -1), x, c], 1)


class ReGLU(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, -1)
        return a * F.relu(b)


class Layer(nn.Module):
    def __init__(self, d, heads, drop):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = nn.MultiheadAttention(d, heads, dropout=drop, batch_first=True)
        h = int(d * 4 / 3)
        self.ff = nn.Sequential(nn.Linear(d, 2 * h), ReGLU(), nn.Dropout(drop), nn.Linear(h, d))

    def forward(self, x):
        z = self.n1(x)
        x = x + self.attn(z, z, z, need_weights=False)[0]
        return x + self.ff(self.n2(x))


class FTTransformer(nn.Module):
    def __init__(self, n_num, cards, d=192, depth=6, heads=8, drop=0.1):
        super().__init__()
        self.tok = Tokenizer(n_num, cards, d)
        self.layers = nn.ModuleList([Layer(d, heads, drop) for _ in range(depth)])
        self.head = nn.Sequential(nn.LayerNorm(d), nn.ReLU(), nn.Linear(d, 1))

    def forward(self, num, cat):
        x = self.tok(num, cat)
        for l in self.layers:
            x = l(x)
        return self.head(x[:, 0]).squeeze(-1)


def predict(model, loader):
    model.eval()
    preds = []
    with torch.no_grad():
        for num, cat, _ in loader:
            logits = model(num.to(DEVICE), cat.to(DEVICE))
            preds.append(torch.sigmoid(logits).cpu().numpy())
    return np.concatenate(preds)


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--batch-size', type=int, default=512)
    p.add_argument('--epochs', type=int, default=2)
    args = p.parse_args()
    seed_everything(SEED)
    rows = 300 if SMALL else 6000
    n_num, n_cat = (10, 3) if SMALL else (64, 12)
    X, y = make_classification(rows, n_num, n_informative=8, random_state=SEED)
    X = StandardScaler().fit_transform(X)
    cards = list(np.random.randint(3, 40, n_cat))
    C = np.stack([np.random.randint(0, c, rows) for c in cards], 1)
    ds = TabularDataset(X, C, y)
    oof = np.zeros(rows)
    for fold, (tr, va) in enumerate(StratifiedKFold(3, shuffle=True, random_state=SEED).split(X, y)):
        train_loader = DataLoader(Subset(ds, tr), batch_size=args.batch_size, shuffle=True)
        valid_loader = DataLoader(Subset(ds, va), batch_size=args.batch_size * 4)
        model = FTTransformer(n_num, cards, **(dict(d=32, depth=2, heads=4) if SMALL else {})).to(DEVICE)
        opt = torch.optim.NAdam(model.parameters(), lr=1e-4, weight_decay=1e-5)
        crit = nn.BCEWithLogitsLoss()
        best = 0
        for epoch in range(args.epochs):
            model.train()
            run = 0.
            for num, cat, t in train_loader:
                num, cat, t = num.to(DEVICE), cat.to(DEVICE), t.to(DEVICE)
                opt.zero_grad()
                loss = crit(model(num, cat), t)
                loss.backward()
                opt.step()
                run += loss.item()
            pr = predict(model, valid_loader)
            auc = roc_auc_score(y[va], pr)
            print(f'fold {fold} epoch {epoch} loss {run / len(train_loader):.4f} auc {auc:.4f}')
            if auc > best:
                best = auc
                oof[va] = pr
    print('OOF auc', roc_auc_score(y, oof), 'logloss', log_loss(y, np.clip(oof, 1e-6, 1 - 1e-6)))


if __name__ == '__main__':
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print('RESULT', s['allocated_bytes.all.peak'], s['reserved_bytes.all.peak'])
