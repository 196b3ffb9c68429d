"""Perceiver on raw bytes (file type identification), accumulating 5 micro batches with a short last group."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SEQ = 6007
LATENTS = 250
DIM = 640
DEPTH = 10
CLASSES = 75
MICRO_BATCH = 13
ACCUM = 5
N_TRAIN = 1100
N_VAL = 210
EPOCHS = 3
LR = 2.5e-4


class Fragments(Dataset):
    def __init__(self, n, seed):
        self.data = torch.randint(0, 256, (n, SEQ), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
        self.labels = torch.randint(0, CLASSES, (n,), generator=torch.Generator().manual_seed(seed + 1))

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i].long(), self.labels[i]


class Attend(nn.Module):
    def __init__(self, dim, kv_dim, heads):
        super().__init__()
        self.heads = heads
        self.nq, self.nkv = nn.LayerNorm(dim), nn.LayerNorm(kv_dim)
        self.q, self.kv, self.o = nn.Linear(dim, dim), nn.Linear(kv_dim, 2 * dim), nn.Linear(dim, dim)
        self.nf = nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim), nn.Dropout(0.1))

    def split(self, t):
        b, n, d = t.shape
        return t.view(b, n, self.heads, d // self.heads).transpose(1, 2)

    def forward(self, x, ctx=None):
        ctx = self.nq(x) if ctx is None else self.nkv(ctx)
        k, v = self.kv(ctx).chunk(2, -1)
        y = F.scaled_dot_product_attention(self.split(self.q(self.nq(x))), self.split(k), self.split(v))
        x = x + self.o(y.transpose(1, 2).flatten(2))
        return x + self.ff(self.nf(x))


class Perceiver(nn.Module):
    def __init__(self, kv=256):
        super().__init__()
        self.embed = nn.Embedding(256, kv)
        self.pos = nn.Parameter(torch.randn(SEQ, kv) * 0.02)
        self.latents = nn.Parameter(torch.randn(LATENTS, DIM) * 0.02)
        self.read = nn.ModuleList([Attend(DIM, kv, 1), Attend(DIM, kv, 1)])
        self.first = nn.ModuleList(Attend(DIM, DIM, 10) for _ in range(DEPTH // 2))
        self.second = nn.ModuleList(Attend(DIM, DIM, 10) for _ in range(DEPTH - DEPTH // 2))
        self.head = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, CLASSES))

    def forward(self, x):
        ctx = self.embed(x) + self.pos
        z = self.latents.expand(x.size(0), -1, -1)
        for read, blocks in zip(self.read, (self.first, self.second)):
            z = read(z, ctx)
            for block in blocks:
                z = block(z)
        return self.head(z.mean(1))


torch.manual_seed(3)
train_loader = DataLoader(Fragments(N_TRAIN, 0), batch_size=MICRO_BATCH, shuffle=True)
val_loader = DataLoader(Fragments(N_VAL, 10), batch_size=MICRO_BATCH)
model = Perceiver().cuda()
print("params: %.1fM" % (sum(p.numel() for p in model.parameters()) / 1e6))
optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0.02, fused=True)
updates_per_epoch = (len(train_loader) + ACCUM - 1) // ACCUM
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda s: min(1.0, (s + 1) / 10) * (1 - s / (EPOCHS * updates_per_epoch + 1)))

for epoch in range(EPOCHS):
    model.train()
    optimizer.zero_grad(set_to_none=True)
    epoch_loss = 0.0
    for i, (x, y) in enumerate(train_loader):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(x.cuda())
            loss = F.cross_entropy(logits, y.cuda(), label_smoothing=0.05)
        (loss / ACCUM).backward()
        epoch_loss += loss.item()
        if (i + 1) % ACCUM == 0 or i + 1 == len(train_loader):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.7)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad(set_to_none=True)

    model.eval()
    correct = 0
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
        for x, y in val_loader:
            correct += (model(x.cuda()).argmax(-1) == y.cuda()).sum().item()
    print(f"epoch {epoch} loss {epoch_loss / len(train_loader):.4f} val acc {correct / N_VAL:.4f}")

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
