"""MPNet sentence-pair similarity regression (STS-B like), plain loop, fp16 autocast + GradScaler."""
import os
import tempfile

import torch
import torch.nn as nn
from scipy.stats import spearmanr
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm
from transformers import MPNetConfig, MPNetModel, get_linear_schedule_with_warmup

VOCAB = 30527
MAX_LEN = 128
BATCH_SIZE = 32
EPOCHS = 2
LR = 2e-5
N_TRAIN = 1024
N_DEV = 256
HIDDEN = 768
LAYERS = 12


class STSDataset(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.pairs = []
        for _ in range(n):
            la, lb = torch.randint(8, MAX_LEN, (2,), generator=g).tolist()
            a = torch.randint(5, VOCAB - 1, (la,), generator=g)
            b = torch.randint(5, VOCAB - 1, (lb,), generator=g)
            self.pairs.append((a, b, float(torch.rand(1, generator=g))))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        return self.pairs[i]


def pad(seqs):
    m = max(len(s) for s in seqs)
    ids = torch.ones(len(seqs), m, dtype=torch.long)
    mask = torch.zeros(len(seqs), m, dtype=torch.long)
    for i, s in enumerate(seqs):
        ids[i, : len(s)] = s
        mask[i, : len(s)] = 1
    return ids, mask


def collate(batch):
    a, b, y = zip(*batch)
    return *pad(a), *pad(b), torch.tensor(y)


class BiEncoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.encoder = MPNetModel(config, add_pooling_layer=False)

    def encode(self, ids, mask):
        h = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        m = mask.unsqueeze(-1).float()
        return (h * m).sum(1) / m.sum(1).clamp(min=1e-9)

    def forward(self, a_ids, a_mask, b_ids, b_mask):
        return torch.cosine_similarity(self.encode(a_ids, a_mask), self.encode(b_ids, b_mask))


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    preds, golds = [], []
    for batch in loader:
        *inputs, y = [t.to(device) for t in batch]
        with torch.autocast(device.type, dtype=torch.float16, enabled=device.type == "cuda"):
            sim = model(*inputs)
        preds += sim.float().cpu().tolist()
        golds += y.cpu().tolist()
    return spearmanr(preds, golds)[0]


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    use_amp = device.type == "cuda"
    config = MPNetConfig(vocab_size=VOCAB, hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=12,
                         intermediate_size=4 * HIDDEN, max_position_embeddings=514)
    model = BiEncoder(config).to(device)

    train_loader = DataLoader(STSDataset(N_TRAIN, 1), BATCH_SIZE, shuffle=True, collate_fn=collate)
    dev_loader = DataLoader(STSDataset(N_DEV, 2), 2 * BATCH_SIZE, collate_fn=collate)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0.01)
    total = len(train_loader) * EPOCHS
    scheduler = get_linear_schedule_with_warmup(optimizer, int(0.1 * total), total)
    scaler = torch.amp.GradScaler("cuda", enabled=use_amp)
    criterion = nn.MSELoss()

    best = -1.0
    with tempfile.TemporaryDirectory() as tmp:
        for epoch in range(EPOCHS):
            model.train()
            losses = []
            for batch in tqdm(train_loader, desc=f"epoch {epoch + 1}"):
                *inputs, y = [t.to(device) for t in batch]
                optimizer.zero_grad()
                with torch.autocast(device.type, dtype=torch.float16, enabled=use_amp):
                    sim = model(*inputs)
                    loss = criterion(sim.float(), y)
                scaler.scale(loss).backward()
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                scheduler.step()
                losses.append(loss.item())
            rho = evaluate(model, dev_loader, device)
            print(f"epoch {epoch + 1} loss {sum(losses) / len(losses):.4f} dev spearman {rho:.4f}")
            if rho > best:
                best = rho
                torch.save(model.state_dict(), os.path.join(tmp, "best.pt"))

    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
