"""Demucs v2-style waveform source separation (GLU conv U-Net with BiLSTM), L1 + multi-resolution STFT loss. Lightning fp32."""
import argparse
import math
import tempfile

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class BLSTM(nn.Module):
    def __init__(self, dim, layers=2):
        super().__init__()
        self.lstm = nn.LSTM(bidirectional=True, num_layers=layers, hidden_size=dim, input_size=dim)
        self.linear = nn.Linear(2 * dim, dim)

    def forward(self, x):
        x = x.permute(2, 0, 1)
        x = self.lstm(x)[0]
        return self.linear(x).permute(1, 2, 0)


def rescale_module(module, reference):
    for sub in module.modules():
        if isinstance(sub, (nn.Conv1d, nn.ConvTranspose1d)):
            scale = (sub.weight.std().detach() / reference) ** 0.5
            sub.weight.data /= scale
            if sub.bias is not None:
                sub.bias.data /= scale


class Demucs(nn.Module):
    def __init__(self, sources=4, audio_channels=2, channels=64, depth=6, kernel=8, stride=4):
        super().__init__()
        self.depth, self.kernel, self.stride, self.sources, self.audio_channels = depth, kernel, stride, sources, audio_channels
        self.encoder, self.decoder = nn.ModuleList(), nn.ModuleList()
        in_ch, ch = audio_channels, channels
        for index in range(depth):
            self.encoder.append(nn.Sequential(nn.Conv1d(in_ch, ch, kernel, stride), nn.ReLU(), nn.Conv1d(ch, 2 * ch, 1), nn.GLU(dim=1)))
            out_ch = in_ch if index > 0 else sources * audio_channels
            dec = [nn.Conv1d(ch, 2 * ch, 3), nn.GLU(dim=1), nn.ConvTranspose1d(ch, out_ch, kernel, stride)]
            if index > 0:
                dec.append(nn.ReLU())
            self.decoder.insert(0, nn.Sequential(*dec))
            in_ch, ch = ch, int(2 * ch)
        self.lstm = BLSTM(in_ch)
        rescale_module(self, 0.1)

    def valid_length(self, length):
        for _ in range(self.depth):
            length = max(1, math.ceil((length - self.kernel) / self.stride) + 1) + 2
        for _ in range(self.depth):
            length = (length - 1) * self.stride + self.kernel
        return int(length)

    @staticmethod
    def center_trim(x, length):
        delta = x.size(-1) - length
        return x[..., delta // 2:-(delta - delta // 2)] if delta else x

    def forward(self, mix):
        length = mix.size(-1)
        delta = self.valid_length(length) - length
        x = F.pad(mix, (delta // 2, delta - delta // 2))
        mono = x.mean(dim=1, keepdim=True)
        mean, std = mono.mean(dim=-1, keepdim=True), mono.std(dim=-1, keepdim=True)
        x = (x - mean) / (std + 1e-5)
        saved = []
        for enc in self.encoder:
            x = enc(x)
            saved.append(x)
        x = self.lstm(x)
        for dec in self.decoder:
            x = dec(x + self.center_trim(saved.pop(-1), x.size(-1)))
        x = x * std + mean
        return self.center_trim(x, length).reshape(x.size(0), self.sources, self.audio_channels, length)


def stft_loss(est, ref, sizes=(512, 1024, 2048)):
    est, ref = est.flatten(0, 2), ref.flatten(0, 2)
    loss = 0
    for n in sizes:
        w = torch.hann_window(n, device=est.device)
        e, r = (torch.stft(x, n, n // 4, window=w, return_complex=True).abs().clamp(min=1e-5) for x in (est, ref))
        loss = loss + torch.norm(r - e) / torch.norm(r) + F.l1_loss(e.log(), r.log())
    return loss / len(sizes)


class Separator(L.LightningModule):
    def __init__(self, channels, lr=3e-4):
        super().__init__()
        self.save_hyperparameters()
        self.model = Demucs(channels=channels)

    @staticmethod
    def remix(sources):
        """shuffle the sources within the batch, flip channels and signs"""
        b, s, c, t = sources.shape
        perm = torch.argsort(torch.rand(b, s, device=sources.device), dim=0)
        sources = sources.gather(0, perm.view(b, s, 1, 1).expand(-1, -1, c, t))
        sign = torch.randint(2, (b, s, 1, 1), device=sources.device).float() * 2 - 1
        left = torch.randint(2, (b, s, 1, 1), device=sources.device).expand(-1, -1, -1, t)
        return torch.cat([sources.gather(2, left), sources.gather(2, 1 - left)], dim=2) * sign

    def training_step(self, sources, _):
        sources = self.remix(sources)
        est = self.model(sources.sum(1))
        l1 = F.l1_loss(est, sources)
        loss = l1 + 0.1 * stft_loss(est, sources)
        self.log_dict({"loss": loss, "l1": l1}, prog_bar=True)
        return loss

    def validation_step(self, sources, _):
        # two shifted passes, averaged
        mix, est = sources.sum(1), 0
        for shift in (0, 512):
            est = est + self.model(F.pad(mix, (shift, 0)))[..., shift:] / 2
        sdr = 10 * torch.log10(sources.pow(2).sum((2, 3)) / ((sources - est).pow(2).sum((2, 3)) + 1e-7))
        self.log_dict({"val_l1": F.l1_loss(est, sources), "val_sdr": sdr.mean()}, prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr, betas=(0.9, 0.999))


class Stems(Dataset):
    def __init__(self, n, seconds, sr, seed):
        self.n, self.length, self.seed = n, int(seconds * sr), seed
        self.bank = 0.1 * torch.randn(4, 2, self.length * 2, generator=torch.Generator().manual_seed(seed)).cumsum(-1).sin()

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        s = torch.randint(0, self.length, (4,))
        return torch.stack([self.bank[k, :, s[k]:s[k] + self.length] for k in range(4)])


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seconds", type=float, default=5.0)
    ap.add_argument("--sr", type=int, default=44100)
    ap.add_argument("--channels", type=int, default=48)
    ap.add_argument("--batch", type=int, default=4)
    ap.add_argument("--n", type=int, default=96)
    ap.add_argument("--epochs", type=int, default=2)
    a = ap.parse_args()
    L.seed_everything(42)
    train = DataLoader(Stems(a.n, a.seconds, a.sr, 0), batch_size=a.batch, shuffle=True, drop_last=True, num_workers=1)
    val = DataLoader(Stems(max(4, a.n // 12), a.seconds * 2, a.sr, 1), batch_size=1, num_workers=0)
    tmp = tempfile.mkdtemp()
    trainer = L.Trainer(max_epochs=a.epochs, accelerator="auto", devices=1, default_root_dir=tmp, logger=False, gradient_clip_val=5.0,
                        callbacks=[L.pytorch.callbacks.ModelCheckpoint(tmp, monitor="val_sdr", mode="max")])
    trainer.fit(Separator(a.channels), train, val)
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
