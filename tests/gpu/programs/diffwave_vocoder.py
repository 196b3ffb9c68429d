# DiffWave vocoder: waveform diffusion conditioned on mel spectrograms (fp32)
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class AttrDict(dict):
    __getattr__ = dict.__getitem__


params = AttrDict(
    batch_size=16,
    learning_rate=2e-4,
    max_grad_norm=1.0,
    n_mels=80,
    hop_samples=256,
    crop_mel_frames=62,
    residual_layers=30,
    residual_channels=64,
    dilation_cycle_length=10,
    noise_schedule=np.linspace(1e-4, 0.05, 50).tolist(),
    epochs=2,
    clips=960,
)


class Clips(Dataset):
    def __len__(self):
        return params.clips

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        audio = torch.rand(params.crop_mel_frames * params.hop_samples, generator=g) * 2 - 1
        spec = torch.rand(params.n_mels, params.crop_mel_frames, generator=g)
        return {"audio": audio, "spectrogram": spec}


def Conv1d(*args, **kwargs):
    layer = nn.Conv1d(*args, **kwargs)
    nn.init.kaiming_normal_(layer.weight)
    return layer


class DiffusionEmbedding(nn.Module):
    def __init__(self, max_steps):
        super().__init__()
        steps = torch.arange(max_steps).unsqueeze(1)
        dims = torch.arange(64).unsqueeze(0)
        table = steps * 10.0 ** (dims * 4.0 / 63.0)
        self.register_buffer("embedding", torch.cat([table.sin(), table.cos()], 1), persistent=False)
        self.projection1 = nn.Linear(128, 512)
        self.projection2 = nn.Linear(512, 512)

    def forward(self, step):
        return F.silu(self.projection2(F.silu(self.projection1(self.embedding[step]))))


class SpectrogramUpsampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.ConvTranspose2d(1, 1, [3, 32], stride=[1, 16], padding=[1, 8])
        self.conv2 = nn.ConvTranspose2d(1, 1, [3, 32], stride=[1, 16], padding=[1, 8])

    def forward(self, x):
        x = F.leaky_relu(self.conv1(x.unsqueeze(1)), 0.4)
        x = F.leaky_relu(self.conv2(x), 0.4)
        return x.squeeze(1)


class ResidualBlock(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.dilated_conv = Conv1d(channels, 2 * channels, 3, padding=dilation, dilation=dilation)
        self.diffusion_projection = nn.Linear(512, channels)
        self.conditioner_projection = Conv1d(params.n_mels, 2 * channels, 1)
        self.output_projection = Conv1d(channels, 2 * channels, 1)

    def forward(self, x, step, cond):
        y = x + self.diffusion_projection(step).unsqueeze(-1)
        y = self.dilated_conv(y) + self.conditioner_projection(cond)
        gate, filt = torch.chunk(y, 2, dim=1)
        y = self.output_projection(torch.sigmoid(gate) * torch.tanh(filt))
        residual, skip = torch.chunk(y, 2, dim=1)
        return (x + residual) / math.sqrt(2.0), skip


class DiffWave(nn.Module):
    def __init__(self):
        super().__init__()
        c = params.residual_channels
        self.input_projection = Conv1d(1, c, 1)
        self.diffusion_embedding = DiffusionEmbedding(len(params.noise_schedule))
        self.upsampler = SpectrogramUpsampler()
        self.layers = nn.ModuleList(
            ResidualBlock(c, 2 ** (i % params.dilation_cycle_length)) for i in range(params.residual_layers))
        self.skip_projection = Conv1d(c, c, 1)
        self.output_projection = Conv1d(c, 1, 1)
        nn.init.zeros_(self.output_projection.weight)

    def forward(self, audio, step, spec):
        x = F.relu(self.input_projection(audio.unsqueeze(1)))
        step = self.diffusion_embedding(step)
        cond = self.upsampler(spec)
        skip = None
        for layer in self.layers:
            x, s = layer(x, step, cond)
            skip = s if skip is None else s + skip
        x = skip / math.sqrt(len(self.layers))
        return self.output_projection(F.relu(self.skip_projection(x)))


class Learner:
    def __init__(self, device):
        self.device = device
        self.model = DiffWave().to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=params.learning_rate)
        self.loss_fn = nn.L1Loss()
        self.noise_level = torch.tensor(np.cumprod(1 - np.array(params.noise_schedule)).astype(np.float32), device=device)

    def train_step(self, features):
        for param in self.model.parameters():
            param.grad = None
        audio, spec = features["audio"].to(self.device), features["spectrogram"].to(self.device)
        t = torch.randint(0, len(params.noise_schedule), [audio.shape[0]], device=self.device)
        scale = self.noise_level[t].unsqueeze(1)
        noise = torch.randn_like(audio)
        noisy = scale ** 0.5 * audio + (1.0 - scale) ** 0.5 * noise
        predicted = self.model(noisy, t, spec)
        loss = self.loss_fn(noise, predicted.squeeze(1))
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), params.max_grad_norm)
        self.optimizer.step()
        return loss

    @torch.no_grad()
    def synthesize(self, frames):
        self.model.eval()
        spec = torch.rand(1, params.n_mels, frames, device=self.device)
        audio = torch.randn(1, frames * params.hop_samples, device=self.device)
        beta = np.array(params.noise_schedule)
        alpha = 1 - beta
        alpha_cum = np.cumprod(alpha)
        for n in range(len(alpha) - 1, -1, -1):
            c1, c2 = 1 / alpha[n] ** 0.5, beta[n] / (1 - alpha_cum[n]) ** 0.5
            eps = self.model(audio, torch.tensor([n], device=self.device), spec).squeeze(1)
            audio = c1 * (audio - c2 * eps)
            if n > 0:
                sigma = ((1.0 - alpha_cum[n - 1]) / (1.0 - alpha_cum[n]) * beta[n]) ** 0.5
                audio += sigma * torch.randn_like(audio)
            audio = torch.clamp(audio, -1.0, 1.0)
        self.model.train()
        return audio


def main():
    learner = Learner(torch.device("cuda"))
    loader = DataLoader(Clips(), batch_size=params.batch_size, shuffle=True, num_workers=4, drop_last=True)
    step = 0
    for epoch in range(params.epochs):
        for features in loader:
            loss = learner.train_step(features)
            if torch.isnan(loss).any():
                raise RuntimeError(f"Detected NaN loss at step {step}.")
            if step % 20 == 0:
                print(f"step {step} loss {loss.item():.4f}")
            step += 1
        audio = learner.synthesize(430)
        print(f"epoch {epoch}: generated {audio.shape[-1]} samples, rms {audio.pow(2).mean().sqrt().item():.4f}")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
