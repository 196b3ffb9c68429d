"""Autoformer long-term forecasting (after thuml/Autoformer): series decomposition, FFT auto-correlation, exp class."""
import argparse
import math
import os
import random
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, Dataset


class MovingAvg(nn.Module):
    def __init__(self, kernel_size, stride=1):
        super().__init__()
        self.kernel_size = kernel_size
        self.avg = nn.AvgPool1d(kernel_size=kernel_size, stride=stride, padding=0)

    def forward(self, x):
        front = x[:, 0:1, :].repeat(1, (self.kernel_size - 1) // 2, 1)
        end = x[:, -1:, :].repeat(1, (self.kernel_size - 1) // 2, 1)
        x = torch.cat([front, x, end], dim=1)
        return self.avg(x.permute(0, 2, 1)).permute(0, 2, 1)


class SeriesDecomp(nn.Module):
    def __init__(self, kernel_size):
        super().__init__()
        self.moving_avg = MovingAvg(kernel_size)

    def forward(self, x):
        mean = self.moving_avg(x)
        return x - mean, mean


class MyLayernorm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.layernorm = nn.LayerNorm(channels)

    def forward(self, x):
        x_hat = self.layernorm(x)
        return x_hat - torch.mean(x_hat, dim=1).unsqueeze(1).repeat(1, x.shape[1], 1)


class AutoCorrelation(nn.Module):
    def __init__(self, factor=1):
        super().__init__()
        self.factor = factor

    def time_delay_agg_training(self, values, corr):
        head, channel, length = values.shape[1], values.shape[2], values.shape[3]
        top_k = int(self.factor * math.log(length))
        mean_value = torch.mean(torch.mean(corr, dim=1), dim=1)
        index = torch.topk(torch.mean(mean_value, dim=0), top_k, dim=-1)[1]
        weights = torch.stack([mean_value[:, index[i]] for i in range(top_k)], dim=-1)
        tmp_corr = torch.softmax(weights, dim=-1)
        delays_agg = torch.zeros_like(values).float()
        for i in range(top_k):
            pattern = torch.roll(values, -int(index[i]), -1)
            delays_agg = delays_agg + pattern * (tmp_corr[:, i].unsqueeze(1).unsqueeze(1).unsqueeze(1).repeat(1, head, channel, length))
        return delays_agg

    def time_delay_agg_inference(self, values, corr):
        batch, head, channel, length = values.shape
        init_index = torch.arange(length).unsqueeze(0).unsqueeze(0).unsqueeze(0).repeat(batch, head, channel, 1).to(values.device)
        top_k = int(self.factor * math.log(length))
        mean_value = torch.mean(torch.mean(corr, dim=1), dim=1)
        weights, delay = torch.topk(mean_value, top_k, dim=-1)
        tmp_corr = torch.softmax(weights, dim=-1)
        tmp_values = values.repeat(1, 1, 1, 2)
        delays_agg = torch.zeros_like(values).float()
        for i in range(top_k):
            tmp_delay = init_index + delay[:, i].unsqueeze(1).unsqueeze(1).unsqueeze(1).repeat(1, head, channel, length)
            pattern = torch.gather(tmp_values, dim=-1, index=tmp_delay)
            delays_agg = delays_agg + pattern * (tmp_corr[:, i].unsqueeze(1).unsqueeze(1).unsqueeze(1).repeat(1, head, channel, length))
        return delays_agg

    def forward(self, queries, keys, values):
        B, L, H, E = queries.shape
        S = values.shape[1]
        if L > S:
            zeros = torch.zeros_like(queries[:, :(L - S), :]).float()
            values = torch.cat([values, zeros], dim=1)
            keys = torch.cat([keys, zeros], dim=1)
        else:
            values = values[:, :L, :, :]
            keys = keys[:, :L, :, :]
        q_fft = torch.fft.rfft(queries.permute(0, 2, 3, 1).contiguous(), dim=-1)
        k_fft = torch.fft.rfft(keys.permute(0, 2, 3, 1).contiguous(), dim=-1)
        corr = torch.fft.irfft(q_fft * torch.conj(k_fft), n=L, dim=-1)
        v = values.permute(0, 2, 3, 1).contiguous()
        agg = self.time_delay_agg_training if self.training else self.time_delay_agg_inference
        return agg(v, corr).permute(0, 3, 1, 2).contiguous()


class AutoCorrelationLayer(nn.Module):
    def __init__(self, d_model, n_heads, factor):
        super().__init__()
        self.inner = AutoCorrelation(factor)
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model) for _ in range(4))
        self.n_heads = n_heads

    def forward(self, q, k, v):
        B, L, _ = q.shape
        S, H = k.shape[1], self.n_heads
        out = self.inner(self.q(q).view(B, L, H, -1), self.k(k).view(B, S, H, -1), self.v(v).view(B, S, H, -1))
        return self.out(out.view(B, L, -1))


class EncoderLayer(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.attention = AutoCorrelationLayer(a.d_model, a.n_heads, a.factor)
        self.conv1 = nn.Conv1d(a.d_model, a.d_ff, 1, bias=False)
        self.conv2 = nn.Conv1d(a.d_ff, a.d_model, 1, bias=False)
        self.decomp1, self.decomp2 = SeriesDecomp(a.moving_avg), SeriesDecomp(a.moving_avg)
        self.dropout = nn.Dropout(a.dropout)

    def forward(self, x):
        x = x + self.dropout(self.attention(x, x, x))
        x, _ = self.decomp1(x)
        y = self.dropout(F.gelu(self.conv1(x.transpose(-1, 1))))
        y = self.dropout(self.conv2(y).transpose(-1, 1))
        return self.decomp2(x + y)[0]


class DecoderLayer(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.self_attention = AutoCorrelationLayer(a.d_model, a.n_heads, a.factor)
        self.cross_attention = AutoCorrelationLayer(a.d_model, a.n_heads, a.factor)
        self.conv1 = nn.Conv1d(a.d_model, a.d_ff, 1, bias=False)
        self.conv2 = nn.Conv1d(a.d_ff, a.d_model, 1, bias=False)
        self.decomp1, self.decomp2, self.decomp3 = (SeriesDecomp(a.moving_avg) for _ in range(3))
        self.dropout = nn.Dropout(a.dropout)
        self.projection = nn.Conv1d(a.d_model, a.c_out, 3, padding=1, padding_mode='circular', bias=False)

    def forward(self, x, cross):
        x = x + self.dropout(self.self_attention(x, x, x))
        x, trend1 = self.decomp1(x)
        x = x + self.dropout(self.cross_attention(x, cross, cross))
        x, trend2 = self.decomp2(x)
        y = self.dropout(F.gelu(self.conv1(x.transpose(-1, 1))))
        y = self.dropout(self.conv2(y).transpose(-1, 1))
        x, trend3 = self.decomp3(x + y)
        residual_trend = trend1 + trend2 + trend3
        return x, self.projection(residual_trend.permute(0, 2, 1)).transpose(1, 2)


class DataEmbedding(nn.Module):
    def __init__(self, c_in, d_model, dropout):
        super().__init__()
        self.token = nn.Conv1d(c_in, d_model, 3, padding=1, padding_mode='circular', bias=False)
        self.temporal = nn.Linear(4, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mark):
        return self.dropout(self.token(x.permute(0, 2, 1)).transpose(1, 2) + self.temporal(mark))


class Autoformer(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.a = a
        self.decomp = SeriesDecomp(a.moving_avg)
        self.enc_embedding = DataEmbedding(a.enc_in, a.d_model, a.dropout)
        self.dec_embedding = DataEmbedding(a.enc_in, a.d_model, a.dropout)
        self.encoder = nn.ModuleList(EncoderLayer(a) for _ in range(a.e_layers))
        self.enc_norm, self.dec_norm = MyLayernorm(a.d_model), MyLayernorm(a.d_model)
        self.decoder = nn.ModuleList(DecoderLayer(a) for _ in range(a.d_layers))
        self.projection = nn.Linear(a.d_model, a.c_out)

    def forward(self, x_enc, x_mark_enc, x_mark_dec):
        a = self.a
        mean = torch.mean(x_enc, dim=1).unsqueeze(1).repeat(1, a.pred_len, 1)
        zeros = torch.zeros([x_enc.shape[0], a.pred_len, x_enc.shape[2]], device=x_enc.device)
        seasonal, trend = self.decomp(x_enc)
        trend = torch.cat([trend[:, -a.label_len:, :], mean], dim=1)
        seasonal = torch.cat([seasonal[:, -a.label_len:, :], zeros], dim=1)
        enc = self.enc_embedding(x_enc, x_mark_enc)
        for layer in self.encoder:
            enc = layer(enc)
        enc = self.enc_norm(enc)
        x = self.dec_embedding(seasonal, x_mark_dec)
        for layer in self.decoder:
            x, residual = layer(x, enc)
            trend = trend + residual
        return (trend + self.projection(self.dec_norm(x)))[:, -a.pred_len:, :]


class Electricity(Dataset):
    def __init__(self, a, flag):
        rng = np.random.default_rng(2021)
        n = a.hours
        t = np.arange(n, dtype=np.float32)[:, None]
        ph = rng.uniform(0, 6, (1, a.enc_in)).astype(np.float32)
        y = np.sin(t * 2 * np.pi / 24 + ph) + 0.4 * np.sin(t * 2 * np.pi / 168 + 2 * ph) + 0.2 * rng.standard_normal((n, a.enc_in)).astype(np.float32)
        mark = np.stack([(t[:, 0] % 24) / 23 - 0.5, (t[:, 0] // 24 % 7) / 6 - 0.5, (t[:, 0] // 24 % 30) / 30 - 0.5,
                         (t[:, 0] // 24 % 365) / 365 - 0.5], 1).astype(np.float32)
        b = {'train': (0, int(n * 0.7)), 'val': (int(n * 0.7) - a.seq_len, int(n * 0.85)), 'test': (int(n * 0.85) - a.seq_len, n)}[flag]
        self.y, self.mark, self.a = y[b[0]:b[1]].astype(np.float32), mark[b[0]:b[1]], a

    def __len__(self):
        return len(self.y) - self.a.seq_len - self.a.pred_len + 1

    def __getitem__(self, i):
        s = i + self.a.seq_len
        r = s - self.a.label_len
        e = s + self.a.pred_len
        return self.y[i:s], self.y[r:e], self.mark[i:s], self.mark[r:e]


class EarlyStopping:
    def __init__(self, patience=7):
        self.patience, self.counter, self.best, self.early_stop = patience, 0, np.inf, False

    def __call__(self, val_loss, model, path):
        if val_loss < self.best:
            print(f'Validation loss decreased ({self.best:.6f} --> {val_loss:.6f}).  Saving model ...')
            torch.save(model.state_dict(), path + '/' + 'checkpoint.pth')
            self.best, self.counter = val_loss, 0
        else:
            self.counter += 1
            self.early_stop = self.counter >= self.patience


class Exp_Main:
    def __init__(self, args):
        self.args = args
        self.device = torch.device('cuda:0') if torch.cuda.is_available() else torch.device('cpu')
        self.model = Autoformer(args).float().to(self.device)

    def _get_data(self, flag):
        ds = Electricity(self.args, flag)
        return DataLoader(ds, batch_size=self.args.batch_size, shuffle=flag == 'train',
                          num_workers=1, drop_last=True)

    def _forward(self, batch):
        x, y, xm, ym = (b.float().to(self.device) for b in batch)
        out = self.model(x, xm, ym)
        return out, y[:, -self.args.pred_len:, :]

    def vali(self, loader, criterion):
        total = []
        self.model.eval()
        with torch.no_grad():
            for i, batch in enumerate(loader):
                out, y = self._forward(batch)
                total.append(criterion(out.detach().cpu(), y.detach().cpu()).item())
        self.model.train()
        return np.average(total)

    def train(self):
        train, val, test = (self._get_data(f) for f in ('train', 'val', 'test'))
        path = tempfile.mkdtemp()
        stop = EarlyStopping(self.args.patience)
        opt = optim.Adam(self.model.parameters(), lr=self.args.learning_rate)
        criterion = nn.MSELoss()
        for epoch in range(self.args.train_epochs):
            train_loss = []
            self.model.train()
            t0 = time.time()
            for i, batch in enumerate(train):
                opt.zero_grad()
                out, y = self._forward(batch)
                loss = criterion(out, y)
                train_loss.append(loss.item())
                if (i + 1) % 10 == 0:
                    print("\titers: {0}, epoch: {1} | loss: {2:.7f}".format(i + 1, epoch + 1, loss.item()))
                loss.backward()
                opt.step()
            vl, tl = self.vali(val, criterion), self.vali(test, criterion)
            print("Epoch: {0} | Train Loss: {1:.7f} Vali Loss: {2:.7f} Test Loss: {3:.7f} {4:.1f}s".format(
                epoch + 1, np.average(train_loss), vl, tl, time.time() - t0))
            stop(vl, self.model, path)
            if stop.early_stop:
                print("Early stopping")
                break
            for g in opt.param_groups:
                g['lr'] = self.args.learning_rate * (0.5 ** epoch)
        self.model.load_state_dict(torch.load(path + '/' + 'checkpoint.pth'))


if __name__ == '__main__':
    random.seed(2021)
    torch.manual_seed(2021)
    np.random.seed(2021)
    p = argparse.ArgumentParser()
    p.add_argument('--seq_len', type=int, default=96)
    p.add_argument('--label_len', type=int, default=48)
    p.add_argument('--pred_len', type=int, default=336)
    p.add_argument('--enc_in', type=int, default=321)
    p.add_argument('--c_out', type=int, default=321)
    p.add_argument('--d_model', type=int, default=512)
    p.add_argument('--n_heads', type=int, default=8)
    p.add_argument('--e_layers', type=int, default=2)
    p.add_argument('--d_layers', type=int, default=1)
    p.add_argument('--d_ff', type=int, default=2048)
    p.add_argument('--moving_avg', type=int, default=25)
    p.add_argument('--factor', type=int, default=3)
    p.add_argument('--dropout', type=float, default=0.05)
    p.add_argument('--batch_size', type=int, default=32)
    p.add_argument('--train_epochs', type=int, default=2)
    p.add_argument('--patience', type=int, default=3)
    p.add_argument('--learning_rate', type=float, default=1e-4)
    p.add_argument('--hours', type=int, default=3200)
    exp = Exp_Main(p.parse_args())
    exp.train()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
