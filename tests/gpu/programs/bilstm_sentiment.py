"""Bidirectional LSTM sentiment classifier (IMDB tutorial style), packed sequences, Adam, fp32."""
import os
import tempfile
import time

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

VOCAB_SIZE = 25002
PAD_IDX = 1
EMBEDDING_DIM = 300
HIDDEN_DIM = 512
N_LAYERS = 2
DROPOUT = 0.5
BATCH_SIZE = 128
N_EPOCHS = 3
N_TRAIN = 2560
N_VALID = 512
N_TEST = 512
MAX_LEN = 400


class Reviews(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.data = []
        for _ in range(n):
            length = int(torch.randint(MAX_LEN // 8, MAX_LEN + 1, (1,), generator=g))
            label = int(torch.randint(0, 2, (1,), generator=g))
            ids = torch.randint(2, VOCAB_SIZE, (length,), generator=g)
            self.data.append((ids, label))

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i]


def collate(batch):
    lengths = torch.tensor([len(x) for x, _ in batch])
    text = pad_sequence([x for x, _ in batch], batch_first=True, padding_value=PAD_IDX)
    labels = torch.tensor([y for _, y in batch], dtype=torch.float)
    return text, lengths, labels


class RNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB_SIZE, EMBEDDING_DIM, padding_idx=PAD_IDX)
        self.rnn = nn.LSTM(EMBEDDING_DIM, HIDDEN_DIM, num_layers=N_LAYERS, bidirectional=True,
                           dropout=DROPOUT, batch_first=True)
        self.fc = nn.Linear(HIDDEN_DIM * 2, 1)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, text, text_lengths):
        embedded = self.dropout(self.embedding(text))
        packed = pack_padded_sequence(embedded, text_lengths.cpu(), batch_first=True, enforce_sorted=False)
        packed_output, (hidden, cell) = self.rnn(packed)
        hidden = self.dropout(torch.cat((hidden[-2], hidden[-1]), dim=1))
        return self.fc(hidden)


def binary_accuracy(preds, y):
    rounded = torch.round(torch.sigmoid(preds))
    return (rounded == y).float().mean()


def train(model, iterator, optimizer, criterion, device):
    epoch_loss, epoch_acc = 0, 0
    model.train()
    for text, lengths, labels in iterator:
        text, labels = text.to(device), labels.to(device)
        optimizer.zero_grad()
        predictions = model(text, lengths).squeeze(1)
        loss = criterion(predictions, labels)
        acc = binary_accuracy(predictions, labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        epoch_loss += loss.item()
        epoch_acc += acc.item()
    return epoch_loss / len(iterator), epoch_acc / len(iterator)


def evaluate(model, iterator, criterion, device):
    epoch_loss, epoch_acc = 0, 0
    model.eval()
    with torch.no_grad():
        for text, lengths, labels in iterator:
            text, labels = text.to(device), labels.to(device)
            predictions = model(text, lengths).squeeze(1)
            epoch_loss += criterion(predictions, labels).item()
            epoch_acc += binary_accuracy(predictions, labels).item()
    return epoch_loss / len(iterator), epoch_acc / len(iterator)


def main():
    torch.manual_seed(1234)
    torch.backends.cudnn.deterministic = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_it = DataLoader(Reviews(N_TRAIN, 0), BATCH_SIZE, shuffle=True, collate_fn=collate)
    valid_it = DataLoader(Reviews(N_VALID, 1), BATCH_SIZE, collate_fn=collate)
    test_it = DataLoader(Reviews(N_TEST, 2), BATCH_SIZE, collate_fn=collate)

    model = RNN().to(device)
    print(f"The model has {sum(p.numel() for p in model.parameters() if p.requires_grad):,} trainable parameters")
    optimizer = torch.optim.Adam(model.parameters())
    criterion = nn.BCEWithLogitsLoss().to(device)

    best_valid_loss = float("inf")
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "tut2-model.pt")
        for epoch in range(N_EPOCHS):
            start = time.time()
            train_loss, train_acc = train(model, train_it, optimizer, criterion, device)
            valid_loss, valid_acc = evaluate(model, valid_it, criterion, device)
            if valid_loss < best_valid_loss:
                best_valid_loss = valid_loss
                torch.save(model.state_dict(), path)
            print(f"Epoch: {epoch + 1:02} | Time: {time.time() - start:.1f}s")
            print(f"\tTrain Loss: {train_loss:.3f} | Train Acc: {train_acc * 100:.2f}%")
            print(f"\t Val. Loss: {valid_loss:.3f} |  Val. Acc: {valid_acc * 100:.2f}%")
        model.load_state_dict(torch.load(path))
        test_loss, test_acc = evaluate(model, test_it, criterion, device)
        print(f"Test Loss: {test_loss:.3f} | Test Acc: {test_acc * 100:.2f}%")
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
