"""Neural audio codec (EnCodec / SoundStream style): SEANet, residual VQ with EMA codebooks, multi-scale STFT
discriminator, loss balancer. Plain PyTorch, fp32."""
import math
import os
import random
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
import torchaudio
from torch.nn.utils.parametrizations import weight_norm
from torch.utils.data import DataLoader, Dataset

SR = 24000
SEGMENT = 24000
BATCH = 16
N_TRAIN, N_VAL = 320, 32
EPOCHS = 2
N_FILTERS, DIM, N_Q, BINS = 32, 128, 8, 1024
RATIOS = [8, 5, 4, 2]
FFTS = [2048, 1024, 512, 256, 128]
device = torch.device("cuda")


class SConv1d(nn.Module):
    def __init__(self, i, o, k, stride=1, dilation=1):
        super().__init__()
        self.conv = weight_norm(nn.Conv1d(i, o, k, stride, dilation=dilation))
        self.k = (k - 1) * dilation + 1
        self.stride = stride

    def forward(self, x):
        pad = self.k - self.stride
        n_frames = (x.shape[-1] - self.k + pad) / self.stride + 1
        ideal = (math.ceil(n_frames) - 1) * self.stride + (self.k - pad)
        extra = ideal - x.shape[-1]
        right = pad // 2
        return self.conv(F.pad(x, (pad - right, right + extra), mode="reflect"))


class SConvTr1d(nn.Module):
    def __init__(self, i, o, k, stride):
        super().__init__()
        self.conv = weight_norm(nn.ConvTranspose1d(i, o, k, stride))
        self.pad = k - stride

    def forward(self, x):
        y = self.conv(x)
        right = self.pad // 2
        return y[..., self.pad - right:y.shape[-1] - right]


class ResnetBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.block = nn.Sequential(nn.ELU(), SConv1d(dim, dim // 2, 3), nn.ELU(), SConv1d(dim // 2, dim, 1))
        self.shortcut = SConv1d(dim, dim, 1)

    def forward(self, x):
        return self.shortcut(x) + self.block(x)


class SLSTM(nn.Module):
    def __init__(self, dim, layers=2):
        super().__init__()
        self.lstm = nn.LSTM(dim, dim, layers)

    def forward(self, x):
        x = x.permute(2, 0, 1)
        y, _ = self.lstm(x)
        return (y + x).permute(1, 2, 0)


def seanet_encoder():
    m = 1
    layers = [SConv1d(1, N_FILTERS, 7)]
    for r in reversed(RATIOS):
        layers += [ResnetBlock(m * N_FILTERS), nn.ELU(), SConv1d(m * N_FILTERS, m * N_FILTERS * 2, r * 2, stride=r)]
        m *= 2
    return nn.Sequential(*layers, SLSTM(m * N_FILTERS), nn.ELU(), SConv1d(m * N_FILTERS, DIM, 7))


def seanet_decoder():
    m = 2 ** len(RATIOS)
    layers = [SConv1d(DIM, m * N_FILTERS, 7), SLSTM(m * N_FILTERS)]
    for r in RATIOS:
        layers += [nn.ELU(), SConvTr1d(m * N_FILTERS, m * N_FILTERS // 2, r * 2, r), ResnetBlock(m * N_FILTERS // 2)]
        m //= 2
    return nn.Sequential(*layers, nn.ELU(), SConv1d(N_FILTERS, 1, 7))


class EuclideanCodebook(nn.Module):
    def __init__(self, dim, size, decay=0.99):
        super().__init__()
        self.decay, self.size = decay, size
        self.register_buffer("inited", torch.tensor(False))
        self.register_buffer("cluster_size", torch.zeros(size))
        self.register_buffer("embed", torch.zeros(size, dim))
        self.register_buffer("embed_avg", torch.zeros(size, dim))

    @torch.no_grad()
    def init_embed_(self, data):
        if self.inited:
            return
        idx = torch.randint(0, data.shape[0], (self.size,), device=data.device)
        self.embed.data.copy_(data[idx])
        self.embed_avg.data.copy_(self.embed)
        self.cluster_size.data.fill_(1.0)
        self.inited.data.copy_(torch.tensor(True))

    def forward(self, x):
        shape = x.shape
        flat = x.reshape(-1, shape[-1])
        self.init_embed_(flat)
        dist = -(flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.embed.t() + self.embed.t().pow(2).sum(0, keepdim=True))
        ind = dist.max(dim=-1).indices
        q = F.embedding(ind, self.embed).view(shape)
        if self.training:
            with torch.no_grad():
                onehot = F.one_hot(ind, self.size).type(x.dtype)
                self.cluster_size.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
                self.embed_avg.mul_(self.decay).add_(onehot.t() @ flat, alpha=1 - self.decay)
                n = self.cluster_size.sum()
                size = (self.cluster_size + 1e-5) / (n + self.size * 1e-5) * n
                self.embed.copy_(self.embed_avg / size.unsqueeze(1))
                dead = self.cluster_size < 0.02
                if dead.any():
                    pick = flat[torch.randint(0, flat.shape[0], (self.size,), device=x.device)]
                    self.embed.copy_(torch.where(dead[:, None], pick, self.embed))
        return q


class ResidualVQ(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(EuclideanCodebook(DIM, BINS) for _ in range(N_Q))

    def forward(self, x):
        x = x.transpose(1, 2)
        n_q = random.choice([2, 4, 8]) if self.training else N_Q
        out, residual, commit = 0.0, x, 0.0
        for layer in self.layers[:n_q]:
            q = layer(residual)
            if self.training:
                commit = commit + F.mse_loss(q.detach(), residual)
                q = residual + (q - residual).detach()
            residual = residual - q.detach()
            out = out + q
        return out.transpose(1, 2), commit


class Codec(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.quantizer, self.decoder = seanet_encoder(), ResidualVQ(), seanet_decoder()

    def forward(self, x):
        q, commit = self.quantizer(self.encoder(x))
        return self.decoder(q)[..., :x.shape[-1]], commit


class DiscriminatorSTFT(nn.Module):
    def __init__(self, n_fft, filters=32):
        super().__init__()
        self.spec = torchaudio.transforms.Spectrogram(n_fft=n_fft, hop_length=n_fft // 4, win_length=n_fft, normalized=True,
                                                      center=False, power=None)
        conv = lambda i, o, k, s=(1, 1), d=(1, 1), p=(0, 0): weight_norm(nn.Conv2d(i, o, k, s, dilation=d, padding=p))
        self.convs = nn.ModuleList([conv(2, filters, (3, 9), p=(1, 4))])
        for d in (1, 2, 4):
            self.convs.append(conv(filters, filters, (3, 9), (1, 2), (d, 1), (d, 4)))
        self.convs.append(conv(filters, filters, (3, 3), p=(1, 1)))
        self.post = conv(filters, 1, (3, 3), p=(1, 1))

    def forward(self, x):
        z = self.spec(x)
        z = torch.cat([z.real, z.imag], dim=1).transpose(2, 3)
        fmap = []
        for layer in self.convs:
            z = F.leaky_relu(layer(z), 0.2)
            fmap.append(z)
        return self.post(z), fmap


class MSSTFTD(nn.Module):
    def __init__(self):
        super().__init__()
        self.discs = nn.ModuleList(DiscriminatorSTFT(n) for n in FFTS)

    def forward(self, x):
        outs = [d(x) for d in self.discs]
        return [o[0] for o in outs], [o[1] for o in outs]


class MelLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.mels = nn.ModuleList(torchaudio.transforms.MelSpectrogram(SR, n_fft=2 ** i, win_length=2 ** i, hop_length=2 ** i // 4,
                                                                       n_mels=32, normalized=True) for i in range(7, 12))

    def forward(self, x, y):
        loss = 0
        for m in self.mels:
            a, b = m(x), m(y)
            loss = loss + F.l1_loss(a, b) + F.mse_loss(torch.log(a + 1e-4), torch.log(b + 1e-4))
        return loss / len(self.mels)


def balanced_backward(losses, weights, out):
    """Rescale the gradient of each loss with respect to the output, then one backward through the generator."""
    grads = {k: torch.autograd.grad(v, [out], retain_graph=True)[0] for k, v in losses.items()}
    total = sum(weights.values())
    g = sum(weights[k] / total * grads[k] / (grads[k].norm(dim=(1, 2)).mean() + 1e-12) for k in losses)
    out.backward(g, retain_graph=True)


class Speech(Dataset):
    def __init__(self, n, seed):
        self.n, self.seed = n, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed + i)
        t = torch.arange(SEGMENT) / SR
        f0 = 80 + 160 * torch.rand(1, generator=g)
        x = sum(torch.sin(2 * math.pi * f0 * k * t) / k for k in range(1, 6)) * 0.2
        return (x + 0.02 * torch.randn(SEGMENT, generator=g))[None]


def main():
    torch.manual_seed(0)
    random.seed(0)
    gen, disc, mel = Codec().to(device), MSSTFTD().to(device), MelLoss().to(device)
    print("generator %.1fM, discriminator %.1fM" % tuple(sum(p.numel() for p in m.parameters()) / 1e6 for m in (gen, disc)))
    og = torch.optim.Adam(gen.parameters(), lr=3e-4, betas=(0.5, 0.9))
    od = torch.optim.Adam(disc.parameters(), lr=3e-4, betas=(0.5, 0.9))
    train = DataLoader(Speech(N_TRAIN, 0), BATCH, shuffle=True, drop_last=True, num_workers=1)
    val = DataLoader(Speech(N_VAL, 10 ** 6), BATCH)
    out_dir = tempfile.mkdtemp()
    last_d = 0.0
    for epoch in range(EPOCHS):
        gen.train()
        for step, x in enumerate(train):
            x = x.to(device)
            y, commit = gen(x)
            if random.random() < 0.67:
                od.zero_grad()
                lr_, _ = disc(x)
                lf_, _ = disc(y.detach())
                d_loss = sum(F.relu(1 - a).mean() + F.relu(1 + b).mean() for a, b in zip(lr_, lf_)) / len(lr_)
                d_loss.backward()
                od.step()
                last_d = d_loss.item()
            with torch.no_grad():
                _, fr = disc(x)
            lf, ff = disc(y)
            adv = sum(F.relu(1 - a).mean() for a in lf) / len(lf)
            feat = sum(F.l1_loss(b, a) / (a.abs().mean() + 1e-8) for fa, fb in zip(fr, ff) for a, b in zip(fa, fb)) / (len(ff) * len(ff[0]))
            losses = {"l1": F.l1_loss(y, x), "mel": mel(y, x), "adv": adv, "feat": feat}
            og.zero_grad()
            balanced_backward(losses, {"l1": 0.1, "mel": 1.0, "adv": 3.0, "feat": 3.0}, y)
            commit.backward()
            og.step()
            if step % 5 == 0:
                print(f"epoch {epoch} step {step} " + " ".join(f"{k} {v.item():.4f}" for k, v in losses.items())
                      + f" commit {commit.item():.4f} d {last_d:.4f}")
        gen.eval()
        with torch.no_grad():
            v = sum(mel(gen(x.to(device))[0], x.to(device)).item() for x in val) / len(val)
        print(f"epoch {epoch} val mel {v:.4f}")
        torch.save({"gen": gen.state_dict(), "disc": disc.state_dict(), "og": og.state_dict(), "od": od.state_dict()},
                   os.path.join(out_dir, "codec.pt"))


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
