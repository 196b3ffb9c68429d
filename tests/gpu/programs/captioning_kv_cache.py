# SPDX-License-Identifier: Apache-2.0
"""Image captioning: a partly frozen ViT (timm), a decoder with cross attention; greedy captions with a key/value cache in validation."""
import argparse
import os

import timm
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

SMALL = os.environ.get("SMALL") == "1"
BOS, EOS, PAD = 1, 2, 0


class Captions(Dataset):
    def __init__(self, count, size, length, vocab):
        self.count, self.size, self.length, self.vocab = count, size, length, vocab

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        n = int(torch.randint(self.length // 2, self.length - 1, (1,), generator=g))
        words = torch.randint(3, self.vocab, (n,), generator=g)
        return torch.randn(3, self.size, self.size, generator=g), torch.cat([torch.tensor([BOS]), words, torch.tensor([EOS])])


def collate(batch):
    images, caps = zip(*batch)
    return torch.stack(images), nn.utils.rnn.pad_sequence(caps, batch_first=True, padding_value=PAD)


class DecoderLayer(nn.Module):
    def __init__(self, d, heads, drop=0.1):
        super().__init__()
        self.h = heads
        self.qkv, self.o1 = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.q, self.kv, self.o2 = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, d)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d), nn.Dropout(drop))
        self.n1, self.n2, self.n3 = nn.LayerNorm(d), nn.LayerNorm(d), nn.LayerNorm(d)
        self.drop = drop

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.h, -1).transpose(1, 2)

    def merge(self, x):
        return x.transpose(1, 2).flatten(2)

    def forward(self, x, memory, cache=None):
        q, k, v = map(self.split, self.qkv(self.n1(x)).chunk(3, -1))
        if cache is not None:
            if "k" in cache:
                k, v = torch.cat([cache["k"], k], 2), torch.cat([cache["v"], v], 2)
            cache["k"], cache["v"] = k, v
        y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None, dropout_p=self.drop if self.training else 0.0)
        x = x + self.o1(self.merge(y))
        if cache is not None and "mk" in cache:
            mk, mv = cache["mk"], cache["mv"]
        else:
            mk, mv = map(self.split, self.kv(memory).chunk(2, -1))
            if cache is not None:
                cache["mk"], cache["mv"] = mk, mv
        x = x + self.o2(self.merge(F.scaled_dot_product_attention(self.split(self.q(self.n2(x))), mk, mv)))
        return x + self.ff(self.n3(x))


class Captioner(nn.Module):
    def __init__(self, backbone, size, vocab, d, layers, heads, unfreeze=2):
        super().__init__()
        self.encoder = timm.create_model(backbone, pretrained=False, num_classes=0, img_size=size)
        self.encoder.requires_grad_(False)
        for block in self.encoder.blocks[-unfreeze:]:
            block.requires_grad_(True)
        self.bridge = nn.Linear(self.encoder.num_features, d)
        self.embed, self.pos = nn.Embedding(vocab, d, padding_idx=PAD), nn.Embedding(128, d)
        self.layers = nn.ModuleList(DecoderLayer(d, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocab)

    def encode(self, images):
        return self.bridge(self.encoder.forward_features(images))

    def decode(self, ids, memory, caches=None, start=0):
        x = self.embed(ids) + self.pos(torch.arange(start, start + ids.shape[1], device=ids.device))
        for i, layer in enumerate(self.layers):
            x = layer(x, memory, caches[i] if caches is not None else None)
        return self.head(self.norm(x))

    @torch.no_grad()
    def caption(self, images, steps=16):
        memory = self.encode(images)
        caches = [{} for _ in self.layers]
        token = torch.full((len(images), 1), BOS, device=images.device)
        result = []
        for t in range(steps):
            token = self.decode(token, memory, caches, t)[:, -1:].argmax(-1)
            result.append(token)
        return torch.cat(result, 1)


def overlap(pred, ref):
    """Unigram precision, a poor man's BLEU-1."""
    hits = sum(len(set(p) & set(r)) for p, r in zip(pred.tolist(), ref.tolist()))
    return hits / pred.numel()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=96)
    p.add_argument("--epochs", type=int, default=2)
    a = p.parse_args()
    torch.manual_seed(0)
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    if SMALL:
        a.batch_size = min(a.batch_size, 4)
    size, vocab = (32, 200) if SMALL else (224, 12000)
    model = Captioner("vit_tiny_patch16_224" if SMALL else "vit_small_patch16_224", size, vocab, *((64, 2, 4) if SMALL else (512, 6, 8))).to(dev)
    workers = 0 if SMALL else 8
    train = DataLoader(Captions(a.batch_size * 6, size, 40, vocab), a.batch_size, shuffle=True, collate_fn=collate, num_workers=workers, pin_memory=dev == "cuda", persistent_workers=workers > 0)
    val = DataLoader(Captions(a.batch_size * 3, size, 40, vocab), a.batch_size * 2, collate_fn=collate, num_workers=workers // 2)
    optimizer = torch.optim.AdamW([
        {"params": [q for q in model.encoder.parameters() if q.requires_grad], "lr": 1e-5},
        {"params": [q for n, q in model.named_parameters() if not n.startswith("encoder.")], "lr": 3e-4},
    ], weight_decay=0.05, foreach=True)
    for epoch in range(a.epochs):
        model.train()
        bar = tqdm(train, desc=f"epoch {epoch}", disable=None)
        for images, caps in bar:
            images, caps = images.to(dev, non_blocking=True), caps.to(dev, non_blocking=True)
            logits = model.decode(caps[:, :-1], model.encode(images))
            loss = F.cross_entropy(logits.transpose(1, 2), caps[:, 1:], ignore_index=PAD, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            bar.set_postfix(loss=loss.item())
        model.eval()
        scores = [overlap(model.caption(images.to(dev)), caps[:, 1:]) for images, caps in val]
        print("bleu-ish", sum(scores) / len(scores))


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
