# Diagonal state space model (S4D) on 12-lead ECG; FFT convolution with complex kernels.
import argparse
import math

import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--length", type=int, default=5000)
parser.add_argument("--d-model", type=int, default=256)
parser.add_argument("--n-layers", type=int, default=6)
parser.add_argument("--records", type=int, default=2400)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--lr", type=float, default=4e-3)
args = parser.parse_args()

LEADS, TARGETS = 12, 5


class ECG(Dataset):
    def __init__(self, n, seed):
        self.n, self.seed = n, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed + i)
        t = torch.arange(args.length) / 500
        rate = 1 + torch.rand(LEADS, 1, generator=g)
        x = torch.sin(2 * math.pi * rate * t) ** 15 + 0.1 * torch.randn(LEADS, args.length, generator=g)
        return x.T, (torch.rand(TARGETS, generator=g) < 0.3).float()


class S4DKernel(nn.Module):
    def __init__(self, d_model, n=64, dt_min=1e-3, dt_max=1e-1):
        super().__init__()
        log_dt = torch.rand(d_model) * (math.log(dt_max) - math.log(dt_min)) + math.log(dt_min)
        self.log_dt = nn.Parameter(log_dt)
        self.C = nn.Parameter(torch.view_as_real(torch.randn(d_model, n // 2, dtype=torch.cfloat)))
        self.log_A_real = nn.Parameter(torch.log(0.5 * torch.ones(d_model, n // 2)))
        self.A_imag = nn.Parameter(math.pi * torch.arange(n // 2).repeat(d_model, 1).float())

    def forward(self, L):
        dt = torch.exp(self.log_dt)
        C = torch.view_as_complex(self.C)
        A = -torch.exp(self.log_A_real) + 1j * self.A_imag
        dtA = A * dt.unsqueeze(-1)
        K = dtA.unsqueeze(-1) * torch.arange(L, device=A.device)
        C = C * (torch.exp(dtA) - 1.0) / A
        return 2 * torch.einsum("hn,hnl->hl", C, torch.exp(K)).real


class S4D(nn.Module):
    def __init__(self, d_model, dropout=0.1):
        super().__init__()
        self.D = nn.Parameter(torch.randn(d_model))
        self.kernel = S4DKernel(d_model)
        self.act = nn.GELU()
        self.dropout = nn.Dropout1d(dropout)
        self.out = nn.Sequential(nn.Conv1d(d_model, 2 * d_model, 1), nn.GLU(dim=-2))

    def forward(self, u):
        L = u.size(-1)
        k = self.kernel(L)
        k_f = torch.fft.rfft(k, n=2 * L)
        u_f = torch.fft.rfft(u, n=2 * L)
        y = torch.fft.irfft(u_f * k_f, n=2 * L)[..., :L]
        y = y + u * self.D.unsqueeze(-1)
        return self.out(self.dropout(self.act(y)))


class S4Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(LEADS, args.d_model)
        self.layers = nn.ModuleList(S4D(args.d_model) for _ in range(args.n_layers))
        self.norms = nn.ModuleList(nn.LayerNorm(args.d_model) for _ in range(args.n_layers))
        self.decoder = nn.Linear(args.d_model, TARGETS)

    def forward(self, x):
        x = self.encoder(x).transpose(-1, -2)
        for layer, norm in zip(self.layers, self.norms):
            x = x + layer(x)
            x = norm(x.transpose(-1, -2)).transpose(-1, -2)
        return self.decoder(x.mean(-1))


device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = S4Model().to(device)
ssm = [p for n, p in model.named_parameters() if "kernel" in n]
rest = [p for n, p in model.named_parameters() if "kernel" not in n]
optimizer = torch.optim.NAdam([{"params": rest, "weight_decay": 0.01}, {"params": ssm, "lr": 1e-3, "weight_decay": 0.0}],
                              lr=args.lr, foreach=False)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
criterion = nn.BCEWithLogitsLoss()
train_loader = DataLoader(ECG(args.records, 0), args.batch_size, shuffle=True, num_workers=4)
val_loader = DataLoader(ECG(max(16, args.records // 10), 10 ** 7), args.batch_size * 2, num_workers=2)

for epoch in range(args.epochs):
    model.train()
    for step, (x, y) in enumerate(train_loader):
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
    scheduler.step()
    model.eval()
    ys, ps = [], []
    with torch.no_grad():
        for x, y in val_loader:
            ps.append(torch.sigmoid(model(x.to(device))).cpu())
            ys.append(y)
    auc = roc_auc_score(torch.cat(ys).numpy(), torch.cat(ps).numpy(), average="macro")
    print(f"epoch {epoch} macro AUC {auc:.4f}")

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
