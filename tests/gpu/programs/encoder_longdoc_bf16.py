import argparse
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--max-len", type=int, default=1024)
parser.add_argument("--d-model", type=int, default=512)
parser.add_argument("--layers", type=int, default=8)
parser.add_argument("--train-docs", type=int, default=4000)
parser.add_argument("--val-docs", type=int, default=600)
parser.add_argument("--lr", type=float, default=3e-4)
args = parser.parse_args()

VOCAB_SIZE = 32000
NUM_CLASSES = 20
PAD = 0


class Docs(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        lens = torch.randint(args.max_len // 8, args.max_len + 1, (n,), generator=g)
        self.items = [torch.randint(1, VOCAB_SIZE, (int(l),), generator=g) for l in lens]
        self.labels = torch.randint(0, NUM_CLASSES, (n,), generator=g)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i], self.labels[i]


def collate(batch):
    xs, ys = zip(*batch)
    x = nn.utils.rnn.pad_sequence(xs, batch_first=True, padding_value=PAD)
    return x, torch.stack(ys), x == PAD


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=4096):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * div)
        pe[0, :, 1::2] = torch.cos(position * div)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return self.dropout(x + self.pe[:, : x.size(1)])


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB_SIZE, args.d_model, padding_idx=PAD)
        self.pos = PositionalEncoding(args.d_model)
        layer = nn.TransformerEncoderLayer(args.d_model, nhead=8, dim_feedforward=4 * args.d_model,
                                           dropout=0.1, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, args.layers)
        self.head = nn.Sequential(nn.LayerNorm(args.d_model), nn.Linear(args.d_model, NUM_CLASSES))

    def forward(self, tokens, pad_mask):
        h = self.pos(self.embed(tokens) * math.sqrt(args.d_model))
        h = self.encoder(h, src_key_padding_mask=pad_mask)
        keep = (~pad_mask[:, : h.size(1)]).unsqueeze(-1)
        pooled = (h * keep).sum(1) / keep.sum(1)
        return self.head(pooled)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)
train_loader = DataLoader(Docs(args.train_docs, 0), batch_size=args.batch_size, shuffle=True,
                          collate_fn=collate, num_workers=2, pin_memory=True)
val_loader = DataLoader(Docs(args.val_docs, 1), batch_size=args.batch_size * 2, collate_fn=collate,
                        num_workers=2, pin_memory=True)
model = Classifier().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
total_steps = args.epochs * len(train_loader)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=args.lr, total_steps=total_steps)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

for epoch in range(args.epochs):
    model.train()
    for i, (x, y, m) in enumerate(train_loader):
        x, y, m = x.to(device, non_blocking=True), y.to(device, non_blocking=True), m.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device_type=device.type, dtype=torch.bfloat16):
            loss = criterion(model(x, m), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if i % 20 == 0:
            print(f"epoch {epoch} step {i}/{len(train_loader)} loss {loss.item():.4f}")

    model.eval()
    hits, seen = 0, 0
    with torch.no_grad(), torch.autocast(device_type=device.type, dtype=torch.bfloat16):
        for x, y, m in val_loader:
            logits = model(x.to(device), m.to(device))
            hits += (logits.argmax(-1) == y.to(device)).sum().item()
            seen += y.numel()
    print(f"epoch {epoch} val acc {hits / seen:.4f}")

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
