"""Tacotron 2 (after NVIDIA/tacotron2): LSTM decoder step by step over mel frames, location-sensitive attention."""
import argparse
import os
import random
import tempfile
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class HParams:
    n_symbols = 148
    symbols_embedding_dim = 512
    encoder_embedding_dim = 512
    encoder_n_convolutions = 3
    encoder_kernel_size = 5
    n_mel_channels = 80
    decoder_rnn_dim = 1024
    prenet_dim = 256
    attention_rnn_dim = 1024
    attention_dim = 128
    attention_location_n_filters = 32
    attention_location_kernel_size = 31
    postnet_embedding_dim = 512
    p_attention_dropout = 0.1
    p_decoder_dropout = 0.1
    max_frames = 320
    min_frames = 120
    batch_size = 32
    epochs = 2
    n_train = 384
    n_val = 64
    learning_rate = 1e-3
    weight_decay = 1e-6
    grad_clip_thresh = 1.0
    iters_per_checkpoint = 10


class LinearNorm(nn.Module):
    def __init__(self, i, o, bias=True, gain='linear'):
        super().__init__()
        self.linear_layer = nn.Linear(i, o, bias=bias)
        nn.init.xavier_uniform_(self.linear_layer.weight, gain=nn.init.calculate_gain(gain))

    def forward(self, x):
        return self.linear_layer(x)


class LocationLayer(nn.Module):
    def __init__(self, n_filters, kernel, dim):
        super().__init__()
        self.location_conv = nn.Conv1d(2, n_filters, kernel, padding=(kernel - 1) // 2, bias=False)
        self.location_dense = LinearNorm(n_filters, dim, bias=False, gain='tanh')

    def forward(self, w):
        return self.location_dense(self.location_conv(w).transpose(1, 2))


class Attention(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.query_layer = LinearNorm(h.attention_rnn_dim, h.attention_dim, bias=False, gain='tanh')
        self.memory_layer = LinearNorm(h.encoder_embedding_dim, h.attention_dim, bias=False, gain='tanh')
        self.v = LinearNorm(h.attention_dim, 1, bias=False)
        self.location_layer = LocationLayer(h.attention_location_n_filters, h.attention_location_kernel_size, h.attention_dim)

    def forward(self, hidden, memory, processed_memory, weights_cat, mask):
        q = self.query_layer(hidden.unsqueeze(1))
        energies = self.v(torch.tanh(q + self.location_layer(weights_cat) + processed_memory)).squeeze(-1)
        energies.data.masked_fill_(mask, -float("inf"))
        weights = F.softmax(energies, dim=1)
        return torch.bmm(weights.unsqueeze(1), memory).squeeze(1), weights


class Encoder(nn.Module):
    def __init__(self, h):
        super().__init__()
        d = h.encoder_embedding_dim
        self.convolutions = nn.ModuleList(nn.Sequential(nn.Conv1d(d, d, h.encoder_kernel_size, padding=h.encoder_kernel_size // 2),
                                                        nn.BatchNorm1d(d)) for _ in range(h.encoder_n_convolutions))
        self.lstm = nn.LSTM(d, d // 2, 1, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        for conv in self.convolutions:
            x = F.dropout(F.relu(conv(x)), 0.5, self.training)
        x = nn.utils.rnn.pack_padded_sequence(x.transpose(1, 2), lengths.cpu().numpy(), batch_first=True)
        self.lstm.flatten_parameters()
        return nn.utils.rnn.pad_packed_sequence(self.lstm(x)[0], batch_first=True)[0]


class Postnet(nn.Module):
    def __init__(self, h):
        super().__init__()
        dims = [h.n_mel_channels] + [h.postnet_embedding_dim] * 4 + [h.n_mel_channels]
        self.convolutions = nn.ModuleList(nn.Sequential(nn.Conv1d(a, b, 5, padding=2), nn.BatchNorm1d(b))
                                          for a, b in zip(dims[:-1], dims[1:]))

    def forward(self, x):
        for conv in self.convolutions[:-1]:
            x = F.dropout(torch.tanh(conv(x)), 0.5, self.training)
        return F.dropout(self.convolutions[-1](x), 0.5, self.training)


class Decoder(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.h = h
        self.prenet = nn.ModuleList([LinearNorm(h.n_mel_channels, h.prenet_dim, bias=False), LinearNorm(h.prenet_dim, h.prenet_dim, bias=False)])
        self.attention_rnn = nn.LSTMCell(h.prenet_dim + h.encoder_embedding_dim, h.attention_rnn_dim)
        self.attention_layer = Attention(h)
        self.decoder_rnn = nn.LSTMCell(h.attention_rnn_dim + h.encoder_embedding_dim, h.decoder_rnn_dim, 1)
        self.linear_projection = LinearNorm(h.decoder_rnn_dim + h.encoder_embedding_dim, h.n_mel_channels)
        self.gate_layer = LinearNorm(h.decoder_rnn_dim + h.encoder_embedding_dim, 1, gain='sigmoid')

    def run_prenet(self, x):
        for linear in self.prenet:
            x = F.dropout(F.relu(linear(x)), p=0.5, training=True)
        return x

    def initialize_decoder_states(self, memory, mask):
        B, T = memory.size(0), memory.size(1)
        z = lambda d: memory.new_zeros(B, d)
        self.attention_hidden, self.attention_cell = z(self.h.attention_rnn_dim), z(self.h.attention_rnn_dim)
        self.decoder_hidden, self.decoder_cell = z(self.h.decoder_rnn_dim), z(self.h.decoder_rnn_dim)
        self.attention_weights, self.attention_weights_cum = z(T), z(T)
        self.attention_context = z(self.h.encoder_embedding_dim)
        self.memory, self.mask = memory, mask
        self.processed_memory = self.attention_layer.memory_layer(memory)

    def decode(self, decoder_input):
        h = self.h
        cell_input = torch.cat((decoder_input, self.attention_context), -1)
        self.attention_hidden, self.attention_cell = self.attention_rnn(cell_input, (self.attention_hidden, self.attention_cell))
        self.attention_hidden = F.dropout(self.attention_hidden, h.p_attention_dropout, self.training)
        cat = torch.cat((self.attention_weights.unsqueeze(1), self.attention_weights_cum.unsqueeze(1)), dim=1)
        self.attention_context, self.attention_weights = self.attention_layer(self.attention_hidden, self.memory,
                                                                              self.processed_memory, cat, self.mask)
        self.attention_weights_cum = self.attention_weights_cum + self.attention_weights
        decoder_input = torch.cat((self.attention_hidden, self.attention_context), -1)
        self.decoder_hidden, self.decoder_cell = self.decoder_rnn(decoder_input, (self.decoder_hidden, self.decoder_cell))
        self.decoder_hidden = F.dropout(self.decoder_hidden, h.p_decoder_dropout, self.training)
        out = torch.cat((self.decoder_hidden, self.attention_context), dim=1)
        return self.linear_projection(out), self.gate_layer(out), self.attention_weights

    def forward(self, memory, mels, mask):
        decoder_inputs = torch.cat((mels.new_zeros(1, mels.size(0), mels.size(1)), mels.permute(2, 0, 1)), dim=0)
        decoder_inputs = self.run_prenet(decoder_inputs)
        self.initialize_decoder_states(memory, mask)
        mel_outputs, gate_outputs, alignments = [], [], []
        while len(mel_outputs) < decoder_inputs.size(0) - 1:
            m, g, a = self.decode(decoder_inputs[len(mel_outputs)])
            mel_outputs += [m.squeeze(1)]
            gate_outputs += [g.squeeze(1)]
            alignments += [a]
        return torch.stack(mel_outputs, 2), torch.stack(gate_outputs, 1), torch.stack(alignments, 1)


def get_mask_from_lengths(lengths):
    ids = torch.arange(0, int(lengths.max().item()), device=lengths.device)
    return ids < lengths.unsqueeze(1)


class Tacotron2(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.embedding = nn.Embedding(h.n_symbols, h.symbols_embedding_dim)
        self.encoder, self.decoder, self.postnet = Encoder(h), Decoder(h), Postnet(h)
        self.n_mel = h.n_mel_channels

    def forward(self, text, text_lengths, mels, mel_lengths):
        emb = self.embedding(text).transpose(1, 2)
        enc = self.encoder(emb, text_lengths)
        mel, gate, align = self.decoder(enc, mels, ~get_mask_from_lengths(text_lengths))
        post = mel + self.postnet(mel)
        mask = ~get_mask_from_lengths(mel_lengths)
        m3 = mask.unsqueeze(1).expand(-1, self.n_mel, -1)
        mel.data.masked_fill_(m3, 0.0)
        post.data.masked_fill_(m3, 0.0)
        gate.data.masked_fill_(mask, 1e3)
        return mel, post, gate, align


class TextMel(Dataset):
    def __init__(self, n, h, seed):
        rng = random.Random(seed)
        self.items = [(rng.randint(h.min_frames, h.max_frames), seed * 100000 + i) for i in range(n)]
        self.h = h

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        frames, s = self.items[i]
        g = torch.Generator().manual_seed(s)
        text = torch.randint(1, self.h.n_symbols, (max(4, frames // 6),), generator=g)
        code = F.interpolate(text[None, None].float() / self.h.n_symbols, size=frames)[0]
        return text, code * torch.linspace(0.5, 1.5, self.h.n_mel_channels)[:, None] - 1


def collate(batch):
    batch.sort(key=lambda b: len(b[0]), reverse=True)
    text = nn.utils.rnn.pad_sequence([b[0] for b in batch], batch_first=True)
    tl = torch.tensor([len(b[0]) for b in batch])
    ml = torch.tensor([b[1].shape[1] for b in batch])
    mel = torch.zeros(len(batch), batch[0][1].shape[0], int(ml.max()))
    gate = torch.zeros(len(batch), int(ml.max()))
    for i, (_, m) in enumerate(batch):
        mel[i, :, :m.shape[1]] = m
        gate[i, m.shape[1] - 1:] = 1
    return text, tl, mel, gate, ml


def criterion(out, mel, gate):
    m, p, g, _ = out
    return F.mse_loss(m, mel) + F.mse_loss(p, mel) + F.binary_cross_entropy_with_logits(g.view(-1, 1), gate.view(-1, 1))


def main():
    h = HParams()
    random.seed(1234)
    torch.manual_seed(1234)
    device = torch.device("cuda")
    out_dir = tempfile.mkdtemp()
    model = Tacotron2(h).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=h.learning_rate, weight_decay=h.weight_decay)
    train = DataLoader(TextMel(h.n_train, h, 1), h.batch_size, shuffle=True, drop_last=True, collate_fn=collate, num_workers=1)
    val = DataLoader(TextMel(h.n_val, h, 2), h.batch_size, collate_fn=collate)
    it = 0
    for epoch in range(h.epochs):
        model.train()
        for text, tl, mel, gate, ml in train:
            start = time.perf_counter()
            text, tl, mel, gate, ml = (t.to(device) for t in (text, tl, mel, gate, ml))
            model.zero_grad()
            loss = criterion(model(text, tl, mel, ml), mel, gate)
            reduced_loss = loss.item()
            loss.backward()
            grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), h.grad_clip_thresh)
            optimizer.step()
            it += 1
            print("Train loss {} {:.6f} Grad Norm {:.6f} {:.2f}s/it".format(it, reduced_loss, grad_norm, time.perf_counter() - start))
            if it % h.iters_per_checkpoint == 0:
                model.eval()
                with torch.no_grad():
                    v = 0.0
                    for text, tl, mel, gate, ml in val:
                        text, tl, mel, gate, ml = (t.to(device) for t in (text, tl, mel, gate, ml))
                        v += criterion(model(text, tl, mel, ml), mel, gate).item()
                print("Validation loss {}: {:.4f}".format(it, v / len(val)))
                model.train()
                torch.save({'iteration': it, 'state_dict': model.state_dict(), 'optimizer': optimizer.state_dict()},
                           os.path.join(out_dir, f"checkpoint_{it}"))


if __name__ == '__main__':
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
