# SPDX-License-Identifier: Apache-2.0
# text line recognition, CRNN + CTC. first a learning-rate range test, then training with ReduceLROnPlateau
import argparse
import copy
import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
ALPHABET = 96


class Lines(Dataset):
    def __init__(self, n, width, max_text):
        self.n, self.width, self.max_text = n, width, max_text

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        n = int(torch.randint(3, self.max_text, (1,), generator=g))
        text = torch.randint(1, ALPHABET, (n,), generator=g)
        img = torch.rand(1, 32, self.width, generator=g) * 0.2
        for k, c in enumerate(text.tolist()):
            x = k * self.width // self.max_text
            img[0, c % 28: c % 28 + 4, x:x + 6] = 1.0
        return img, text, n


def collate(batch):
    img, text, n = zip(*batch)
    return torch.stack(img), nn.utils.rnn.pad_sequence(text, batch_first=True), torch.tensor(n)


class BidirectionalLSTM(nn.Module):
    def __init__(self, nin, nh, nout):
        super().__init__()
        self.rnn = nn.LSTM(nin, nh, bidirectional=True)
        self.embedding = nn.Linear(nh * 2, nout)

    def forward(self, x):
        out, _ = self.rnn(x)
        T, b, h = out.size()
        return self.embedding(out.view(T * b, h)).view(T, b, -1)


class CRNN(nn.Module):
    def __init__(self, nh, w):
        super().__init__()
        def conv(i, o, bn=False, k=3, p=1):
            layers = [nn.Conv2d(i, o, k, 1, p)]
            if bn:
                layers.append(nn.BatchNorm2d(o))
            return layers + [nn.ReLU(True)]
        self.cnn = nn.Sequential(
            *conv(1, w), nn.MaxPool2d(2, 2), *conv(w, 2 * w), nn.MaxPool2d(2, 2), *conv(2 * w, 4 * w, True), *conv(4 * w, 4 * w), nn.MaxPool2d((2, 2), (2, 1), (0, 1)),
            *conv(4 * w, 8 * w, True), *conv(8 * w, 8 * w), nn.MaxPool2d((2, 2), (2, 1), (0, 1)), *conv(8 * w, 8 * w, True, 2, 0))
        self.rnn = nn.Sequential(BidirectionalLSTM(8 * w, nh, nh), BidirectionalLSTM(nh, nh, ALPHABET))

    def forward(self, x):
        return self.rnn(self.cnn(x).squeeze(2).permute(2, 0, 1)).log_softmax(2)


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        prev, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            prev, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, prev + (x != y))
    return row[-1]


def ctc_step(model, criterion, batch):
    img, text, n = batch
    out = model(img.to(device))
    lengths = torch.full((out.size(1),), out.size(0), dtype=torch.long)
    return criterion(out, text.to(device), lengths, n), out


def range_test(model, criterion, loader, low=1e-6, high=1.0):
    state = copy.deepcopy(model.state_dict())
    opt = torch.optim.Adam(model.parameters(), lr=low)
    steps = len(loader)
    lrs, losses = [], []
    for i, batch in enumerate(loader):
        lr = low * (high / low) ** (i / max(1, steps - 1))
        opt.param_groups[0]["lr"] = lr
        opt.zero_grad()
        loss, _ = ctc_step(model, criterion, batch)
        loss.backward()
        opt.step()
        lrs.append(lr)
        losses.append(loss.item())
    model.load_state_dict(state)
    return lrs[max(0, min(range(len(losses)), key=losses.__getitem__) - 1)]


def validate(model, criterion, loader):
    model.eval()
    total, errors, chars = 0.0, 0, 0
    with torch.no_grad():
        for batch in loader:
            loss, out = ctc_step(model, criterion, batch)
            total += loss.item()
            best = out.argmax(2).T.cpu()
            for seq, t, n in zip(best, batch[1], batch[2]):
                seq = torch.unique_consecutive(seq)
                seq = seq[seq != 0].tolist()
                errors += edit_distance(seq[:40], t[:n].tolist())
                chars += int(n)
    model.train()
    return total / len(loader), errors / chars


ap = argparse.ArgumentParser()
ap.add_argument("--batch-size", type=int, default=256)
args = ap.parse_args()
torch.manual_seed(0)
if SMALL:
    args.batch_size = 4
width = 64 if SMALL else 256
workers = 0 if SMALL else 4
train_loader = DataLoader(Lines(args.batch_size * 6, width, 10 if SMALL else 25), args.batch_size, shuffle=True, collate_fn=collate, num_workers=workers)
val_loader = DataLoader(Lines(args.batch_size, width * 2, 10 if SMALL else 40), args.batch_size // 2, collate_fn=collate, num_workers=workers)
model = CRNN(16 if SMALL else 256, 4 if SMALL else 64).to(device)
criterion = nn.CTCLoss(zero_infinity=True)
lr = range_test(model, criterion, train_loader)
print("suggested lr", lr)
optimizer = torch.optim.Adadelta(model.parameters(), lr=max(lr, 1e-3) * 100, rho=0.9)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "min", 0.5, 1)
for epoch in range(2):
    for batch in train_loader:
        optimizer.zero_grad()
        loss, _ = ctc_step(model, criterion, batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5)
        optimizer.step()
    val, cer = validate(model, criterion, val_loader)
    plateau.step(val)
    print("epoch", epoch, "loss", loss.item(), "val", val, "cer", cer)
if torch.cuda.is_available():
    s = torch.cuda.memory_stats()
    print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
