"""VoxelMorph-diff: unsupervised 3D registration of brain volumes to an atlas (NCC + gradient loss, scaling and squaring)."""
import argparse
import os
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions.normal import Normal

parser = argparse.ArgumentParser()
parser.add_argument("--shape", type=int, nargs=3, default=[128, 144, 128])
parser.add_argument("--batch-size", type=int, default=1)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--steps-per-epoch", type=int, default=25)
parser.add_argument("--enc", type=int, nargs="+", default=[16, 32, 32, 32])
parser.add_argument("--dec", type=int, nargs="+", default=[32, 32, 32, 32, 32, 16, 16])
parser.add_argument("--int-steps", type=int, default=7)
parser.add_argument("--int-downsize", type=int, default=2)
parser.add_argument("--lambda", type=float, dest="weight", default=0.01)
parser.add_argument("--lr", type=float, default=1e-4)
args = parser.parse_args()
np.random.seed(0)
torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cudnn.deterministic = True


class SpatialTransformer(nn.Module):
    def __init__(self, size, mode="bilinear"):
        super().__init__()
        self.mode = mode
        grid = torch.stack(torch.meshgrid([torch.arange(0, s) for s in size], indexing="ij")).unsqueeze(0).float()
        self.register_buffer("grid", grid, persistent=False)

    def forward(self, src, flow):
        new_locs = self.grid + flow
        shape = flow.shape[2:]
        for i in range(len(shape)):
            new_locs[:, i, ...] = 2 * (new_locs[:, i, ...] / (shape[i] - 1) - 0.5)
        new_locs = new_locs.permute(0, 2, 3, 4, 1)[..., [2, 1, 0]]
        return F.grid_sample(src, new_locs, align_corners=True, mode=self.mode)


class VecInt(nn.Module):
    def __init__(self, size, nsteps):
        super().__init__()
        self.nsteps, self.scale, self.transformer = nsteps, 1.0 / (2 ** nsteps), SpatialTransformer(size)

    def forward(self, vec):
        vec = vec * self.scale
        for _ in range(self.nsteps):
            vec = vec + self.transformer(vec, vec)
        return vec


class ResizeTransform(nn.Module):
    def __init__(self, vel_resize):
        super().__init__()
        self.factor = 1.0 / vel_resize

    def forward(self, x):
        if self.factor < 1:
            return self.factor * F.interpolate(x, align_corners=True, scale_factor=self.factor, mode="trilinear")
        if self.factor > 1:
            return F.interpolate(self.factor * x, align_corners=True, scale_factor=self.factor, mode="trilinear")
        return x


class ConvBlock(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.main, self.activation = nn.Conv3d(i, o, 3, 1, 1), nn.LeakyReLU(0.2)

    def forward(self, x):
        return self.activation(self.main(x))


class Unet(nn.Module):
    def __init__(self, enc, dec):
        super().__init__()
        self.pool, self.up = nn.MaxPool3d(2), nn.Upsample(scale_factor=2, mode="nearest")
        self.encoder, prev, enc_feats = nn.ModuleList(), 2, [2]
        for nf in enc:
            self.encoder.append(ConvBlock(prev, nf))
            prev = nf
            enc_feats.append(nf)
        skips = enc_feats[::-1]
        self.decoder = nn.ModuleList()
        for level, nf in enumerate(dec[:len(enc)]):
            self.decoder.append(ConvBlock(prev, nf))
            prev = nf + skips[level]
        self.remaining = nn.ModuleList()
        for nf in dec[len(enc):]:
            self.remaining.append(ConvBlock(prev, nf))
            prev = nf
        self.final_nf = prev

    def forward(self, x):
        history = [x]
        for conv in self.encoder:
            x = conv(x)
            history.append(x)
            x = self.pool(x)
        for conv in self.decoder:
            x = self.up(conv(x))
            x = torch.cat([x, history.pop()], dim=1)
        for conv in self.remaining:
            x = conv(x)
        return x


class VxmDense(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.unet = Unet(args.enc, args.dec)
        self.flow = nn.Conv3d(self.unet.final_nf, 3, 3, padding=1)
        self.flow.weight = nn.Parameter(Normal(0, 1e-5).sample(self.flow.weight.shape))
        self.flow.bias = nn.Parameter(torch.zeros(self.flow.bias.shape))
        self.resize, self.fullsize = ResizeTransform(args.int_downsize), ResizeTransform(1 / args.int_downsize)
        self.integrate = VecInt([s // args.int_downsize for s in shape], args.int_steps)
        self.transformer = SpatialTransformer(shape)

    def forward(self, source, target, registration=False):
        x = self.unet(torch.cat([source, target], dim=1))
        pos_flow = self.resize(self.flow(x))
        preint_flow = pos_flow
        pos_flow = self.fullsize(self.integrate(pos_flow))
        y = self.transformer(source, pos_flow)
        return (y, pos_flow) if registration else (y, preint_flow)


class NCC:
    def __init__(self, win=9):
        self.win = win

    def loss(self, I, J):
        filt = torch.ones([1, 1, self.win, self.win, self.win], device=I.device)
        pad = self.win // 2
        sums = [F.conv3d(t, filt, padding=pad) for t in (I, J, I * I, J * J, I * J)]
        I_sum, J_sum, I2_sum, J2_sum, IJ_sum = sums
        n = self.win ** 3
        u_I, u_J = I_sum / n, J_sum / n
        cross = IJ_sum - u_J * I_sum - u_I * J_sum + u_I * u_J * n
        I_var = I2_sum - 2 * u_I * I_sum + u_I * u_I * n
        J_var = J2_sum - 2 * u_J * J_sum + u_J * u_J * n
        return -torch.mean(cross * cross / (I_var * J_var + 1e-5))


def grad_loss(flow):
    dy, dx, dz = (torch.diff(flow, dim=d) ** 2 for d in (2, 3, 4))
    return (dy.mean() + dx.mean() + dz.mean()) / 3.0 * args.int_downsize


def make_volume(rng):
    low = torch.from_numpy(rng.random((1, 1, 10, 10, 10), dtype=np.float32))
    return F.interpolate(low, size=args.shape, mode="trilinear", align_corners=True)


def scan_to_atlas(volumes, atlas, batch_size):
    while True:
        idx = np.random.randint(len(volumes), size=batch_size)
        yield torch.cat([volumes[i] for i in idx]), atlas.repeat(batch_size, 1, 1, 1, 1)


rng = np.random.default_rng(0)
volumes = [make_volume(rng) for _ in range(6)]
atlas = make_volume(rng)
generator = scan_to_atlas(volumes, atlas, args.batch_size)
model = VxmDense(args.shape).to(device)
model.train()
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
image_loss = NCC().loss
model_dir = tempfile.mkdtemp()
for epoch in range(args.epochs):
    epoch_loss, epoch_total, step_time = [], [], []
    for step in range(args.steps_per_epoch):
        start = time.time()
        moving, fixed = next(generator)
        moving, fixed = moving.to(device), fixed.to(device)
        y, flow = model(moving, fixed)
        sim, reg = image_loss(fixed, y), args.weight * grad_loss(flow)
        loss = sim + reg
        epoch_loss.append([sim.item(), reg.item()])
        epoch_total.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step_time.append(time.time() - start)
    print(f"Epoch {epoch + 1}/{args.epochs} - {np.mean(step_time):.4f} sec/step - loss: {np.mean(epoch_total):.4e} {np.mean(epoch_loss, axis=0)}", flush=True)
    model.eval()
    with torch.no_grad():
        moved, field = model(volumes[0].to(device), atlas.to(device), registration=True)
        print(f"  mse after registration {F.mse_loss(moved, atlas.to(device)).item():.5f} max displacement {field.abs().max().item():.3f}")
    model.train()
    torch.save(model.state_dict(), os.path.join(model_dir, f"{epoch:04d}.pt"))

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
