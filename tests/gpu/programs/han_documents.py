"""Hierarchical attention network for document classification (Yang et al. 2016)."""
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

VOCAB = 40000
CLASSES = 10
EMB = 300
HIDDEN = 256
BATCH = 96
EPOCHS = 3
N_TRAIN = 6000
N_TEST = 1200
MAX_SENTS = 30
MAX_WORDS = 45


class Reviews(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.docs = []
        self.labels = []
        for _ in range(n):
            n_sent = min(MAX_SENTS, max(2, int(rng.gauss(14, 6))))
            lens = [min(MAX_WORDS, max(3, int(rng.gauss(20, 9)))) for _ in range(n_sent)]
            self.docs.append([torch.randint(1, VOCAB, (l,)) for l in lens])
            self.labels.append(rng.randrange(CLASSES))

    def __len__(self):
        return len(self.docs)

    def __getitem__(self, i):
        return self.docs[i], self.labels[i]


def collate(batch):
    docs, labels = zip(*batch)
    words = max(len(s) for d in docs for s in d)
    out = []
    for d in docs:
        t = torch.zeros(len(d), words, dtype=torch.long)
        for j, s in enumerate(d):
            t[j, :len(s)] = s
        out.append(t)
    return pad_sequence(out, batch_first=True), torch.tensor(labels)


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.context = nn.Linear(dim, 1, bias=False)

    def forward(self, h, mask):
        score = self.context(torch.tanh(self.proj(h))).squeeze(-1)
        score = score.masked_fill(~mask, -1e4)
        alpha = torch.softmax(score, dim=-1)
        return (alpha.unsqueeze(-1) * h).sum(1)


class HAN(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, EMB, padding_idx=0)
        self.word_gru = nn.GRU(EMB, HIDDEN, batch_first=True, bidirectional=True)
        self.word_att = Attention(2 * HIDDEN)
        self.sent_gru = nn.GRU(2 * HIDDEN, HIDDEN, batch_first=True, bidirectional=True)
        self.sent_att = Attention(2 * HIDDEN)
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(2 * HIDDEN, CLASSES)

    def forward(self, x):
        b, s, w = x.shape
        x = x.view(b * s, w)
        mask = x != 0
        h, _ = self.word_gru(self.drop(self.emb(x)))
        sent = self.word_att(h, mask).view(b, s, -1)
        h, _ = self.sent_gru(sent)
        doc = self.sent_att(h, mask.view(b, s, w).any(-1))
        return self.fc(self.drop(doc))


torch.manual_seed(1)
device = torch.device("cuda")
train_dl = DataLoader(Reviews(N_TRAIN, 0), BATCH, shuffle=True, collate_fn=collate)
test_dl = DataLoader(Reviews(N_TEST, 1), BATCH, collate_fn=collate)
model = HAN().to(device)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(1, EPOCHS + 1):
    model.train()
    running = 0.0
    for x, y in train_dl:
        x, y = x.to(device), y.to(device)
        opt.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        running += loss.item() * len(y)
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in test_dl:
            correct += (model(x.to(device)).argmax(1).cpu() == y).sum().item()
    print(f"epoch {epoch}: loss {running / N_TRAIN:.4f} acc {correct / N_TEST:.4f}")

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
