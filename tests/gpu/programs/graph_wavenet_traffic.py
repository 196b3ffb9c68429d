"""Graph WaveNet traffic forecasting (after nnzhan/Graph-WaveNet): METR-LA sized synthetic data, masked MAE, test by horizon."""
import argparse
import os
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

parser = argparse.ArgumentParser()
parser.add_argument('--device', type=str, default='cuda:0')
parser.add_argument('--seq_length', type=int, default=12)
parser.add_argument('--nhid', type=int, default=32)
parser.add_argument('--in_dim', type=int, default=2)
parser.add_argument('--num_nodes', type=int, default=207)
parser.add_argument('--batch_size', type=int, default=64)
parser.add_argument('--learning_rate', type=float, default=0.001)
parser.add_argument('--dropout', type=float, default=0.3)
parser.add_argument('--weight_decay', type=float, default=0.0001)
parser.add_argument('--epochs', type=int, default=3)
parser.add_argument('--print_every', type=int, default=10)
parser.add_argument('--steps', type=int, default=2600)
args = parser.parse_args()


class nconv(nn.Module):
    def forward(self, x, A):
        return torch.einsum('ncvl,vw->ncwl', (x, A)).contiguous()


class gcn(nn.Module):
    def __init__(self, c_in, c_out, dropout, support_len=3, order=2):
        super(gcn, self).__init__()
        self.nconv = nconv()
        self.mlp = nn.Conv2d((order * support_len + 1) * c_in, c_out, kernel_size=(1, 1))
        self.dropout, self.order = dropout, order

    def forward(self, x, support):
        out = [x]
        for a in support:
            x1 = self.nconv(x, a)
            out.append(x1)
            for k in range(2, self.order + 1):
                x2 = self.nconv(x1, a)
                out.append(x2)
                x1 = x2
        h = self.mlp(torch.cat(out, dim=1))
        return F.dropout(h, self.dropout, training=self.training)


class gwnet(nn.Module):
    def __init__(self, device, num_nodes, dropout=0.3, supports=None, in_dim=2, out_dim=12, channels=32, skip=256, end=512,
                 kernel_size=2, blocks=4, layers=2):
        super(gwnet, self).__init__()
        self.dropout, self.blocks, self.layers, self.supports = dropout, blocks, layers, supports
        self.filter_convs, self.gate_convs, self.skip_convs = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        self.bn, self.gconv = nn.ModuleList(), nn.ModuleList()
        self.start_conv = nn.Conv2d(in_dim, channels, kernel_size=(1, 1))
        receptive_field = 1
        self.nodevec1 = nn.Parameter(torch.randn(num_nodes, 10).to(device), requires_grad=True).to(device)
        self.nodevec2 = nn.Parameter(torch.randn(10, num_nodes).to(device), requires_grad=True).to(device)
        for b in range(blocks):
            additional_scope, new_dilation = kernel_size - 1, 1
            for i in range(layers):
                self.filter_convs.append(nn.Conv2d(channels, channels, (1, kernel_size), dilation=new_dilation))
                self.gate_convs.append(nn.Conv2d(channels, channels, (1, kernel_size), dilation=new_dilation))
                self.skip_convs.append(nn.Conv2d(channels, skip, (1, 1)))
                self.bn.append(nn.BatchNorm2d(channels))
                new_dilation *= 2
                receptive_field += additional_scope
                additional_scope *= 2
                self.gconv.append(gcn(channels, channels, dropout, support_len=len(supports) + 1))
        self.end_conv_1 = nn.Conv2d(skip, end, (1, 1), bias=True)
        self.end_conv_2 = nn.Conv2d(end, out_dim, (1, 1), bias=True)
        self.receptive_field = receptive_field

    def forward(self, input):
        in_len = input.size(3)
        x = F.pad(input, (self.receptive_field - in_len, 0, 0, 0)) if in_len < self.receptive_field else input
        x = self.start_conv(x)
        skip = 0
        adp = F.softmax(F.relu(torch.mm(self.nodevec1, self.nodevec2)), dim=1)
        new_supports = self.supports + [adp]
        for i in range(self.blocks * self.layers):
            residual = x
            x = torch.tanh(self.filter_convs[i](residual)) * torch.sigmoid(self.gate_convs[i](residual))
            s = self.skip_convs[i](x)
            try:
                skip = skip[:, :, :, -s.size(3):]
            except Exception:
                skip = 0
            skip = s + skip
            x = self.gconv[i](x, new_supports)
            x = x + residual[:, :, :, -x.size(3):]
            x = self.bn[i](x)
        x = F.relu(skip)
        x = F.relu(self.end_conv_1(x))
        return self.end_conv_2(x)


def masked_mae(preds, labels, null_val=0.0):
    mask = (labels != null_val).float()
    mask /= torch.mean(mask)
    loss = torch.abs(preds - labels) * mask
    return torch.mean(torch.where(torch.isnan(loss), torch.zeros_like(loss), loss))


def masked_rmse(preds, labels):
    mask = (labels != 0).float()
    mask /= mask.mean()
    return torch.sqrt(torch.mean((preds - labels) ** 2 * mask))


class DataLoader(object):
    def __init__(self, xs, ys, batch_size):
        num_padding = (batch_size - (len(xs) % batch_size)) % batch_size
        self.xs = np.concatenate([xs, np.repeat(xs[-1:], num_padding, axis=0)], axis=0)
        self.ys = np.concatenate([ys, np.repeat(ys[-1:], num_padding, axis=0)], axis=0)
        self.batch_size, self.num_batch = batch_size, len(self.xs) // batch_size

    def shuffle(self):
        permutation = np.random.permutation(len(self.xs))
        self.xs, self.ys = self.xs[permutation], self.ys[permutation]

    def get_iterator(self):
        for k in range(self.num_batch):
            sl = slice(k * self.batch_size, (k + 1) * self.batch_size)
            yield self.xs[sl], self.ys[sl]


def load_dataset(a):
    rng = np.random.default_rng(0)
    t = np.arange(a.steps)
    speed = 50 + 12 * np.sin(2 * np.pi * t[:, None] / 288 + rng.uniform(0, 1, a.num_nodes)) + rng.normal(0, 3, (a.steps, a.num_nodes))
    speed[rng.random(speed.shape) < 0.03] = 0
    data = np.stack([speed, np.repeat((t % 288 / 288)[:, None], a.num_nodes, 1)], -1).astype(np.float32)
    L = a.seq_length
    idx = np.arange(L, a.steps - L)
    x = np.stack([data[i - L:i] for i in idx])
    y = np.stack([data[i:i + L] for i in idx])
    n1, n2 = int(len(x) * 0.7), int(len(x) * 0.8)
    mean, std = x[:n1, ..., 0].mean(), x[:n1, ..., 0].std()
    x[..., 0] = (x[..., 0] - mean) / std
    return (x[:n1], y[:n1]), (x[n1:n2], y[n1:n2]), (x[n2:], y[n2:]), mean, std


def main():
    torch.manual_seed(0)
    np.random.seed(0)
    device = torch.device(args.device)
    (xt, yt), (xv, yv), (xs, ys), mean, std = load_dataset(args)
    train, val, test = DataLoader(xt, yt, args.batch_size), DataLoader(xv, yv, args.batch_size), DataLoader(xs, ys, args.batch_size)
    adj = np.random.rand(args.num_nodes, args.num_nodes).astype(np.float32)
    adj[adj < 0.95] = 0
    np.fill_diagonal(adj, 1)
    supports = [torch.tensor(a / a.sum(1, keepdims=True)).to(device) for a in (adj, adj.T)]
    model = gwnet(device, args.num_nodes, args.dropout, supports, args.in_dim, args.seq_length, args.nhid, args.nhid * 8, args.nhid * 16)
    model.to(device)
    optimizer = optim.Adam(model.parameters(), lr=args.learning_rate, weight_decay=args.weight_decay)
    save = tempfile.mkdtemp()
    his_loss = []
    print("start training...", flush=True)

    def forward(x, y):
        x = torch.Tensor(x).to(device).transpose(1, 3)
        y = torch.Tensor(y).to(device).transpose(1, 3)
        out = model(F.pad(x, (1, 0, 0, 0))).transpose(1, 3)
        real = torch.unsqueeze(y[:, 0, :, :], dim=1)
        return out * std + mean, real

    for i in range(1, args.epochs + 1):
        train_loss = []
        t1 = time.time()
        train.shuffle()
        model.train()
        for it, (x, y) in enumerate(train.get_iterator()):
            optimizer.zero_grad()
            predict, real = forward(x, y)
            loss = masked_mae(predict, real, 0.0)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5)
            optimizer.step()
            train_loss.append(loss.item())
            if it % args.print_every == 0:
                print(f'Iter: {it:03d}, Train Loss: {train_loss[-1]:.4f}, Train RMSE: {masked_rmse(predict, real).item():.4f}', flush=True)
        model.eval()
        valid_loss = []
        with torch.no_grad():
            for x, y in val.get_iterator():
                valid_loss.append(masked_mae(*forward(x, y)).item())
        his_loss.append(np.mean(valid_loss))
        print(f'Epoch: {i:03d}, Train Loss: {np.mean(train_loss):.4f}, Valid Loss: {his_loss[-1]:.4f}, {time.time() - t1:.2f}s', flush=True)
        torch.save(model.state_dict(), os.path.join(save, f"epoch_{i}_{round(float(his_loss[-1]), 2)}.pth"))

    bestid = int(np.argmin(his_loss))
    model.load_state_dict(torch.load(os.path.join(save, f"epoch_{bestid + 1}_{round(float(his_loss[bestid]), 2)}.pth")))
    model.eval()
    outputs, reals = [], []
    with torch.no_grad():
        for x, y in test.get_iterator():
            predict, real = forward(x, y)
            outputs.append(predict.squeeze(1))
            reals.append(real.squeeze(1))
    yhat, realy = torch.cat(outputs, dim=0), torch.cat(reals, dim=0)
    for i in (2, 5, 11):
        print(f'Horizon {i + 1}: Test MAE {masked_mae(yhat[:, :, i], realy[:, :, i]).item():.4f} '
              f'RMSE {masked_rmse(yhat[:, :, i], realy[:, :, i]).item():.4f}')


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
