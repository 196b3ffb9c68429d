"""Get To The Point: pointer-generator network with coverage (BiLSTM encoder, attention decoder, Adagrad)."""
import os
import random
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.data import DataLoader, Dataset

# config
hidden_dim = 256
emb_dim = 128
batch_size = 24
max_enc_steps = 400
max_dec_steps = 80
vocab_size = 50000
max_oovs = 40
lr = 0.15
adagrad_init_acc = 0.1
rand_unif_init_mag = 0.02
max_grad_norm = 2.0
cov_loss_wt = 1.0
eps = 1e-12
n_train, n_val = 480, 72
PAD, START, STOP, UNK = 1, 2, 3, 0

random.seed(123)
torch.manual_seed(123)
if torch.cuda.is_available():
    torch.cuda.manual_seed_all(123)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class News(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.rows = []
        for _ in range(n):
            le = int(torch.randint(max_enc_steps // 2, max_enc_steps + 1, (1,), generator=g))
            ld = int(torch.randint(max_dec_steps // 2, max_dec_steps + 1, (1,), generator=g))
            ext = torch.randint(4, vocab_size + max_oovs, (le,), generator=g)
            summary = ext[torch.randint(0, le, (ld,), generator=g)]
            self.rows.append((ext, summary))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    rows = sorted(rows, key=lambda r: -len(r[0]))
    enc_lens = torch.tensor([len(r[0]) for r in rows])
    enc_ext = torch.full((len(rows), int(enc_lens.max())), PAD)
    for i, (e, _) in enumerate(rows):
        enc_ext[i, :len(e)] = e
    dec_in = torch.full((len(rows), max_dec_steps), PAD)
    target = torch.full((len(rows), max_dec_steps), PAD)
    dec_mask = torch.zeros(len(rows), max_dec_steps)
    for i, (_, s) in enumerate(rows):
        full = torch.cat([torch.tensor([START]), s.where(s < vocab_size, torch.tensor(UNK))])[:max_dec_steps]
        tgt = torch.cat([s, torch.tensor([STOP])])[:max_dec_steps]
        dec_in[i, :len(full)], target[i, :len(tgt)], dec_mask[i, :len(tgt)] = full, tgt, 1
    enc = enc_ext.where(enc_ext < vocab_size, torch.tensor(UNK))
    return enc, enc_ext, (enc_ext != PAD).float(), enc_lens, dec_in, target, dec_mask


def init_lstm(lstm):
    for name, p in lstm.named_parameters():
        if name.startswith("weight_"):
            p.data.uniform_(-rand_unif_init_mag, rand_unif_init_mag)
        elif name.startswith("bias_"):
            p.data.fill_(0.0)
            n = p.size(0)
            p.data[n // 4:n // 2].fill_(1.0)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, emb_dim)
        nn.init.normal_(self.embedding.weight, std=1e-4)
        self.lstm = nn.LSTM(emb_dim, hidden_dim, batch_first=True, bidirectional=True)
        init_lstm(self.lstm)
        self.W_h = nn.Linear(hidden_dim * 2, hidden_dim * 2, bias=False)

    def forward(self, x, lens):
        packed = pack_padded_sequence(self.embedding(x), lens, batch_first=True)
        out, hidden = self.lstm(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        out = out.contiguous()
        return out, self.W_h(out.view(-1, 2 * hidden_dim)), hidden


class ReduceState(nn.Module):
    def __init__(self):
        super().__init__()
        self.reduce_h = nn.Linear(hidden_dim * 2, hidden_dim)
        self.reduce_c = nn.Linear(hidden_dim * 2, hidden_dim)

    def forward(self, hidden):
        h, c = hidden
        h = h.transpose(0, 1).reshape(-1, hidden_dim * 2)
        c = c.transpose(0, 1).reshape(-1, hidden_dim * 2)
        return F.relu(self.reduce_h(h)).unsqueeze(0), F.relu(self.reduce_c(c)).unsqueeze(0)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.W_c = nn.Linear(1, hidden_dim * 2, bias=False)
        self.decode_proj = nn.Linear(hidden_dim * 2, hidden_dim * 2)
        self.v = nn.Linear(hidden_dim * 2, 1, bias=False)

    def forward(self, s_t_hat, enc_out, enc_feature, mask, coverage):
        b, t_k, n = enc_out.size()
        dec_fea = self.decode_proj(s_t_hat).unsqueeze(1).expand(b, t_k, n).contiguous().view(-1, n)
        att = enc_feature + dec_fea + self.W_c(coverage.view(-1, 1))
        scores = self.v(torch.tanh(att)).view(-1, t_k)
        attn = F.softmax(scores, dim=1) * mask
        attn = attn / attn.sum(1, keepdim=True)
        c_t = torch.bmm(attn.unsqueeze(1), enc_out).view(-1, hidden_dim * 2)
        return c_t, attn, coverage + attn


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_network = Attention()
        self.embedding = nn.Embedding(vocab_size, emb_dim)
        self.x_context = nn.Linear(hidden_dim * 2 + emb_dim, emb_dim)
        self.lstm = nn.LSTM(emb_dim, hidden_dim, batch_first=True)
        init_lstm(self.lstm)
        self.p_gen_linear = nn.Linear(hidden_dim * 4 + emb_dim, 1)
        self.out1 = nn.Linear(hidden_dim * 3, hidden_dim)
        self.out2 = nn.Linear(hidden_dim, vocab_size)

    def forward(self, y, s, enc_out, enc_feature, mask, c_t, extra_zeros, enc_ext, coverage):
        x = self.x_context(torch.cat((c_t, self.embedding(y)), 1))
        out, s = self.lstm(x.unsqueeze(1), s)
        s_hat = torch.cat((s[0].view(-1, hidden_dim), s[1].view(-1, hidden_dim)), 1)
        c_t, attn, coverage_next = self.attention_network(s_hat, enc_out, enc_feature, mask, coverage)
        p_gen = torch.sigmoid(self.p_gen_linear(torch.cat((c_t, s_hat, x), 1)))
        output = self.out2(self.out1(torch.cat((out.view(-1, hidden_dim), c_t), 1)))
        vocab_dist = p_gen * F.softmax(output, dim=1)
        vocab_dist = torch.cat([vocab_dist, extra_zeros], 1)
        final = vocab_dist.scatter_add(1, enc_ext, (1 - p_gen) * attn)
        return final, s, c_t, attn, coverage_next


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.reduce_state, self.decoder = Encoder(), ReduceState(), Decoder()
        self.decoder.embedding.weight = self.encoder.embedding.weight

    def forward(self, enc, enc_ext, mask, lens, dec_in, target, dec_mask):
        enc_out, enc_feat, hidden = self.encoder(enc, lens)
        s = self.reduce_state(hidden)
        b = enc.size(0)
        c_t = torch.zeros(b, 2 * hidden_dim, device=enc.device)
        coverage = torch.zeros_like(mask)
        extra = torch.zeros(b, max_oovs, device=enc.device)
        step_losses = []
        for di in range(max_dec_steps):
            final, s, c_t, attn, nxt = self.decoder(dec_in[:, di], s, enc_out, enc_feat, mask, c_t, extra, enc_ext, coverage)
            gold = torch.gather(final, 1, target[:, di].unsqueeze(1)).squeeze(1)
            loss = -torch.log(gold + eps) + cov_loss_wt * torch.min(attn, coverage).sum(1)
            coverage = nxt
            step_losses.append(loss * dec_mask[:, di])
        return (torch.stack(step_losses, 1).sum(1) / dec_mask.sum(1)).mean()


train_loader = DataLoader(News(n_train, 0), batch_size=batch_size, shuffle=True, collate_fn=collate)
val_loader = DataLoader(News(n_val, 1), batch_size=batch_size, collate_fn=collate)
model = Model().to(device)
optimizer = torch.optim.Adagrad(model.parameters(), lr=lr, initial_accumulator_value=adagrad_init_acc)
save_dir = tempfile.mkdtemp()


def move(batch):
    return [t if i == 3 else t.to(device) for i, t in enumerate(batch)]


running_avg_loss = 0.0
for epoch in range(2):
    model.train()
    start = time.time()
    for it, batch in enumerate(train_loader):
        optimizer.zero_grad()
        loss = model(*move(batch))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
        optimizer.step()
        running_avg_loss = loss.item() if running_avg_loss == 0 else running_avg_loss * 0.99 + 0.01 * loss.item()
        if it % 5 == 0:
            print(f"epoch {epoch} iter {it} loss {loss.item():.3f} avg {running_avg_loss:.3f} {time.time() - start:.1f}s")
    model.eval()
    with torch.no_grad():
        val = [model(*move(b)).item() for b in val_loader]
    print(f"epoch {epoch} val loss {sum(val) / len(val):.3f}")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loss": running_avg_loss}, os.path.join(save_dir, f"model_{epoch}"))

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
