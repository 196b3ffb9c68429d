"""FastSpeech 2 text-to-mel: FFT blocks, variance adaptor with length regulator, PostNet. accelerate, fp16, accumulation."""
import argparse
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm


def get_mask_from_lengths(lengths, max_len=None):
    max_len = int(lengths.max().item()) if max_len is None else max_len
    ids = torch.arange(0, max_len, device=lengths.device).unsqueeze(0).expand(lengths.shape[0], -1)
    return ids >= lengths.unsqueeze(1).expand(-1, max_len)


class MultiHeadAttention(nn.Module):
    def __init__(self, heads, d, dropout=0.2):
        super().__init__()
        self.h, self.dk = heads, d // heads
        self.w_qs, self.w_ks, self.w_vs, self.fc = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.norm, self.drop = nn.LayerNorm(d), nn.Dropout(dropout)

    def forward(self, x, mask):
        b, n, d = x.shape
        q, k, v = (w(x).view(b, n, self.h, self.dk).permute(2, 0, 1, 3).reshape(-1, n, self.dk) for w in (self.w_qs, self.w_ks, self.w_vs))
        attn = torch.bmm(q, k.transpose(1, 2)) / self.dk ** 0.5
        attn = attn.masked_fill(mask.repeat(self.h, 1, 1), -np.inf)
        attn = torch.softmax(attn, dim=2)
        out = torch.bmm(attn, v).view(self.h, b, n, self.dk).permute(1, 2, 0, 3).reshape(b, n, -1)
        return self.norm(self.drop(self.fc(out)) + x)


class FFTBlock(nn.Module):
    def __init__(self, d, heads, d_inner, kernel=(9, 1), dropout=0.2):
        super().__init__()
        self.attn = MultiHeadAttention(heads, d, dropout)
        self.w1 = nn.Conv1d(d, d_inner, kernel[0], padding=kernel[0] // 2)
        self.w2 = nn.Conv1d(d_inner, d, kernel[1], padding=kernel[1] // 2)
        self.norm, self.drop = nn.LayerNorm(d), nn.Dropout(dropout)

    def forward(self, x, mask, slf_mask):
        x = self.attn(x, slf_mask).masked_fill(mask.unsqueeze(-1), 0)
        y = self.w2(F.relu(self.w1(x.transpose(1, 2)))).transpose(1, 2)
        return self.norm(self.drop(y) + x).masked_fill(mask.unsqueeze(-1), 0)


def sinusoid(n, d):
    pos = torch.arange(n)[:, None] / 10000 ** (2 * (torch.arange(d)[None] // 2) / d)
    pos[:, 0::2], pos[:, 1::2] = pos[:, 0::2].sin(), pos[:, 1::2].cos()
    return pos[None]


class Stack(nn.Module):
    def __init__(self, layers, d, heads, d_inner, max_len, vocab=None):
        super().__init__()
        self.emb = nn.Embedding(vocab, d, padding_idx=0) if vocab else None
        self.pos = nn.Parameter(sinusoid(max_len, d), requires_grad=False)
        self.layers = nn.ModuleList([FFTBlock(d, heads, d_inner) for _ in range(layers)])

    def forward(self, x, mask):
        n = x.shape[1]
        slf = mask.unsqueeze(1).expand(-1, n, -1)
        x = (self.emb(x) if self.emb is not None else x) + self.pos[:, :n]
        for layer in self.layers:
            x = layer(x, mask, slf)
        return x


class VariancePredictor(nn.Module):
    def __init__(self, d, filt=256, kernel=3, dropout=0.5):
        super().__init__()
        self.c1, self.c2 = nn.Conv1d(d, filt, kernel, padding=1), nn.Conv1d(filt, filt, kernel, padding=1)
        self.n1, self.n2, self.drop, self.out = nn.LayerNorm(filt), nn.LayerNorm(filt), nn.Dropout(dropout), nn.Linear(filt, 1)

    def forward(self, x, mask):
        x = self.drop(self.n1(F.relu(self.c1(x.transpose(1, 2)).transpose(1, 2))))
        x = self.drop(self.n2(F.relu(self.c2(x.transpose(1, 2)).transpose(1, 2))))
        return self.out(x).squeeze(-1).masked_fill(mask, 0.0)


class VarianceAdaptor(nn.Module):
    def __init__(self, d, bins=256):
        super().__init__()
        self.duration, self.pitch, self.energy = VariancePredictor(d), VariancePredictor(d), VariancePredictor(d)
        self.bins = nn.Parameter(torch.linspace(-3, 3, bins - 1), requires_grad=False)
        self.pitch_emb, self.energy_emb = nn.Embedding(bins, d), nn.Embedding(bins, d)

    @staticmethod
    def length_regulate(x, durations, max_len):
        out = []
        for seq, dur in zip(x, durations):
            expanded = torch.repeat_interleave(seq, dur, dim=0)
            out.append(F.pad(expanded, (0, 0, 0, max_len - expanded.shape[0])))
        return torch.stack(out)

    def forward(self, x, src_mask, max_len, pitch_t, energy_t, dur_t):
        log_d = self.duration(x, src_mask)
        p = self.pitch(x, src_mask)
        x = x + self.pitch_emb(torch.bucketize(pitch_t, self.bins))
        e = self.energy(x, src_mask)
        x = x + self.energy_emb(torch.bucketize(energy_t, self.bins))
        return self.length_regulate(x, dur_t, max_len), p, e, log_d


class PostNet(nn.Module):
    def __init__(self, n_mel=80, d=512, n=5):
        super().__init__()
        dims = [n_mel] + [d] * (n - 1) + [n_mel]
        self.convs = nn.ModuleList([nn.Sequential(nn.Conv1d(i, o, 5, padding=2), nn.BatchNorm1d(o)) for i, o in zip(dims[:-1], dims[1:])])

    def forward(self, x):
        x = x.transpose(1, 2)
        for c in self.convs[:-1]:
            x = F.dropout(torch.tanh(c(x)), 0.5, self.training)
        return F.dropout(self.convs[-1](x), 0.5, self.training).transpose(1, 2)


class FastSpeech2(nn.Module):
    def __init__(self, d=256, layers=(4, 6), d_inner=1024, n_mel=80, vocab=360, n_speakers=100):
        super().__init__()
        self.encoder = Stack(layers[0], d, 2, d_inner, 1001, vocab)
        self.variance = VarianceAdaptor(d)
        self.decoder = Stack(layers[1], d, 2, d_inner, 2001)
        self.mel, self.postnet, self.speaker = nn.Linear(d, n_mel), PostNet(n_mel), nn.Embedding(n_speakers, d)

    def forward(self, speakers, texts, src_lens, mels, mel_lens, p_t, e_t, d_t):
        src_mask, mel_mask = get_mask_from_lengths(src_lens, texts.shape[1]), get_mask_from_lengths(mel_lens, mels.shape[1])
        x = self.encoder(texts, src_mask)
        x = x + self.speaker(speakers).unsqueeze(1).expand(-1, texts.shape[1], -1)
        x, p, e, log_d = self.variance(x, src_mask, mels.shape[1], p_t, e_t, d_t)
        out = self.mel(self.decoder(x, mel_mask))
        return out, out + self.postnet(out), p, e, log_d, ~src_mask, ~mel_mask


def fs2_loss(batch, pred):
    _, _, _, mels, _, p_t, e_t, d_t = batch
    out, post, p, e, log_d, src_mask, mel_mask = pred
    m = mel_mask.unsqueeze(-1)
    mel_loss = F.l1_loss(out.masked_select(m), mels.masked_select(m))
    post_loss = F.l1_loss(post.masked_select(m), mels.masked_select(m))
    others = [F.mse_loss(a.masked_select(src_mask), b.masked_select(src_mask)) for a, b in ((p, p_t), (e, e_t), (log_d, torch.log(d_t.float() + 1)))]
    return mel_loss + post_loss + sum(others), mel_loss, post_loss, *others


class LibriTTS(Dataset):
    def __init__(self, n, max_phon, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            l = int(torch.randint(max_phon // 3, max_phon + 1, (1,), generator=g))
            dur = torch.randint(1, 13, (l,), generator=g)
            self.items.append((int(torch.randint(0, 100, (1,), generator=g)), torch.randint(1, 360, (l,), generator=g), torch.randn(int(dur.sum()), 80, generator=g),
                               torch.randn(l, generator=g), torch.randn(l, generator=g), dur))
        self.items.sort(key=lambda r: len(r[1]))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(rows):
    pad = lambda i: nn.utils.rnn.pad_sequence([r[i] for r in rows], batch_first=True)
    return [torch.tensor([r[0] for r in rows]), pad(1), torch.tensor([len(r[1]) for r in rows]), pad(2), torch.tensor([len(r[2]) for r in rows]), pad(3), pad(4), pad(5)]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch_size", type=int, default=24)
    ap.add_argument("--n_train", type=int, default=720)
    ap.add_argument("--max_phonemes", type=int, default=150)
    ap.add_argument("--d", type=int, default=256)
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--accum", type=int, default=2)
    args = ap.parse_args()
    accelerator = Accelerator(mixed_precision="fp16", gradient_accumulation_steps=args.accum)
    set_seed(1234)
    model = FastSpeech2(args.d)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0, lr=args.d ** -0.5)
    warm = 40
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min((s + 1) ** -0.5, (s + 1) * warm ** -1.5))
    train = DataLoader(LibriTTS(args.n_train, args.max_phonemes, 0), batch_size=args.batch_size, shuffle=True, collate_fn=collate, num_workers=1)
    val = DataLoader(LibriTTS(args.n_train // 8, args.max_phonemes, 1), batch_size=args.batch_size, collate_fn=collate)
    model, optimizer, train, val, scheduler = accelerator.prepare(model, optimizer, train, val, scheduler)
    out = tempfile.mkdtemp()
    for epoch in range(args.epochs):
        model.train()
        bar = tqdm(train, desc=f"Epoch {epoch}")
        for batch in bar:
            with accelerator.accumulate(model):
                losses = fs2_loss(batch, model(*batch))
                accelerator.backward(losses[0])
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            bar.set_postfix(total=f"{losses[0].item():.3f}", mel=f"{losses[1].item():.3f}")
        model.eval()
        sums = [0.0] * 6
        with torch.no_grad():
            for batch in val:
                for i, l in enumerate(fs2_loss(batch, model(*batch))):
                    sums[i] += l.item() * len(batch[0])
        print("Validation: total {:.4f} mel {:.4f} post {:.4f} pitch {:.4f} energy {:.4f} dur {:.4f}".format(*[s / len(val.dataset) for s in sums]))
        torch.save({"model": accelerator.unwrap_model(model).state_dict(), "optimizer": optimizer.state_dict()}, os.path.join(out, f"{epoch}.pth.tar"))
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
