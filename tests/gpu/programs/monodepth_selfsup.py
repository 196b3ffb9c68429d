"""Self-supervised depth from video triplets: depth net, pose net, view synthesis, SSIM + L1 with the minimum over frames."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet18


class Triplets(Dataset):
    """A window sliding over a textured panorama; the lower half (near) moves faster than the upper."""

    def __init__(self, n, h, w, seed):
        g = torch.Generator().manual_seed(seed)
        octaves = [F.interpolate(torch.rand(1, 3, h // s, 2 * w // s, generator=g), size=(h, 2 * w), mode="bilinear") for s in (32, 8, 2)]
        self.pano = (sum(octaves) / 3)[0]
        self.n, self.h, self.w = n, h, w
        self.start = torch.randint(32, w - 32, (n,), generator=g).tolist()
        self.speed = torch.randint(2, 8, (n,), generator=g).tolist()

    def __len__(self):
        return self.n

    def frame(self, i, k):
        s = self.start[i]
        far, near = s + k * self.speed[i], s + 2 * k * self.speed[i]
        half = self.h // 2
        return torch.cat([self.pano[:, :half, far:far + self.w], self.pano[:, half:, near:near + self.w]], 1)

    def __getitem__(self, i):
        return torch.stack([self.frame(i, k) for k in (-1, 0, 1)])


class Encoder(nn.Module):
    def __init__(self, frames=1):
        super().__init__()
        net = resnet18(weights=None)
        if frames > 1:
            net.conv1 = nn.Conv2d(3 * frames, 64, 7, 2, 3, bias=False)
        self.net = net
        del self.net.fc

    def forward(self, x):
        n = self.net
        f0 = F.relu(n.bn1(n.conv1((x - 0.45) / 0.225)))
        f1 = n.layer1(n.maxpool(f0))
        f2 = n.layer2(f1)
        f3 = n.layer3(f2)
        return [f0, f1, f2, f3, n.layer4(f3)]


def conv(i, o):
    return nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(i, o, 3), nn.ELU(inplace=True))


class DepthDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        enc, dec = [64, 64, 128, 256, 512], [16, 32, 64, 128, 256]
        self.up0, self.up1, self.disp = nn.ModuleDict(), nn.ModuleDict(), nn.ModuleDict()
        for i in range(4, -1, -1):
            self.up0[str(i)] = conv(enc[-1] if i == 4 else dec[i + 1], dec[i])
            self.up1[str(i)] = conv(dec[i] + (enc[i - 1] if i else 0), dec[i])
            if i < 4:
                self.disp[str(i)] = nn.Conv2d(dec[i], 1, 3, padding=1)

    def forward(self, feats):
        x, out = feats[-1], {}
        for i in range(4, -1, -1):
            x = F.interpolate(self.up0[str(i)](x), scale_factor=2, mode="nearest")
            if i:
                x = torch.cat([x, feats[i - 1]], 1)
            x = self.up1[str(i)](x)
            if i < 4:
                out[i] = torch.sigmoid(self.disp[str(i)](x))
        return out


class PoseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = Encoder(2)
        self.head = nn.Sequential(nn.Conv2d(512, 256, 1), nn.ReLU(), nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.Conv2d(256, 6, 1))

    def forward(self, a, b):
        v = 0.01 * self.head(self.enc(torch.cat([a, b], 1))[-1]).mean((2, 3))
        return v[:, :3], v[:, 3:]


def rigid(axisangle, t):
    angle = axisangle.norm(dim=1, keepdim=True).clamp(min=1e-7)
    x, y, z = (axisangle / angle).unbind(1)
    zero = torch.zeros_like(x)
    K = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], 1).view(-1, 3, 3)
    s, c = angle.sin()[..., None], angle.cos()[..., None]
    R = torch.eye(3, device=t.device) + s * K + (1 - c) * K @ K
    return torch.cat([R, t[..., None]], 2)


def warp(src, depth, T, K):
    b, _, h, w = src.shape
    y, x = torch.meshgrid(torch.arange(h, device=src.device).float(), torch.arange(w, device=src.device).float(), indexing="ij")
    pix = torch.stack([x, y, torch.ones_like(x)]).view(1, 3, -1).expand(b, -1, -1)
    cam = depth.view(b, 1, -1) * (torch.linalg.inv(K) @ pix)
    cam = torch.cat([cam, torch.ones_like(cam[:, :1])], 1)
    p = K @ (T @ cam)
    xy = p[:, :2] / (p[:, 2:] + 1e-7)
    grid = torch.stack([xy[:, 0] / (w - 1), xy[:, 1] / (h - 1)], -1).view(b, h, w, 2) * 2 - 1
    return F.grid_sample(src, grid, padding_mode="border", align_corners=True)


def photometric(a, b):
    l1 = (a - b).abs().mean(1, keepdim=True)
    pool = lambda z: F.avg_pool2d(F.pad(z, (1, 1, 1, 1), mode="reflect"), 3, 1)
    ma, mb = pool(a), pool(b)
    va, vb, cov = pool(a * a) - ma ** 2, pool(b * b) - mb ** 2, pool(a * b) - ma * mb
    ssim = ((2 * ma * mb + 1e-4) * (2 * cov + 9e-4)) / ((ma ** 2 + mb ** 2 + 1e-4) * (va + vb + 9e-4))
    return 0.85 * ((1 - ssim) / 2).clamp(0, 1).mean(1, keepdim=True) + 0.15 * l1


def smoothness(disp, img):
    d = disp / (disp.mean((2, 3), keepdim=True) + 1e-7)
    dx, dy = (d[..., :-1] - d[..., 1:]).abs(), (d[..., :-1, :] - d[..., 1:, :]).abs()
    ix = (img[..., :-1] - img[..., 1:]).abs().mean(1, keepdim=True)
    iy = (img[..., :-1, :] - img[..., 1:, :]).abs().mean(1, keepdim=True)
    return (dx * torch.exp(-ix)).mean() + (dy * torch.exp(-iy)).mean()


class Trainer:
    def __init__(self, a):
        self.a = a
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.encoder, self.decoder, self.pose = Encoder().to(self.device), DepthDecoder().to(self.device), PoseNet().to(self.device)
        params = [p for m in (self.encoder, self.decoder, self.pose) for p in m.parameters()]
        self.opt = torch.optim.Adam(params, 1e-4)
        self.sched = torch.optim.lr_scheduler.StepLR(self.opt, 1, 0.5)
        self.train_loader = DataLoader(Triplets(a.samples, a.height, a.width, 1), a.batch_size, True, num_workers=3, drop_last=True)
        self.val_loader = DataLoader(Triplets(a.samples // 8, a.height, a.width, 2), a.batch_size, num_workers=1)
        w, h = a.width, a.height
        self.K = torch.tensor([[0.58 * w, 0, 0.5 * w], [0, 1.92 * h, 0.5 * h], [0, 0, 1]], device=self.device)

    def modes(self, train):
        for m in (self.encoder, self.decoder, self.pose):
            m.train(train)

    def losses(self, frames):
        prev, cur, nxt = frames.unbind(1)
        disps = self.decoder(self.encoder(cur))
        poses = [rigid(*self.pose(prev, cur)), rigid(*self.pose(cur, nxt))]
        identity = torch.cat([photometric(s, cur) for s in (prev, nxt)], 1)
        identity = identity + 1e-5 * torch.randn_like(identity)
        total = 0.0
        for scale, disp in disps.items():
            full = F.interpolate(disp, size=cur.shape[2:], mode="bilinear", align_corners=False)
            depth = 1 / (0.01 + 9.99 * full)
            reproj = torch.cat([photometric(warp(s, depth, T, self.K), cur) for s, T in zip((prev, nxt), poses)], 1)
            best = torch.cat([identity, reproj], 1).min(1).values
            small = F.interpolate(cur, size=disp.shape[2:], mode="area")
            total = total + best.mean() + 1e-3 * smoothness(disp, small) / 2 ** scale
        return total / len(disps)

    def run(self):
        for epoch in range(self.a.epochs):
            self.modes(True)
            for i, frames in enumerate(self.train_loader):
                loss = self.losses(frames.to(self.device))
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                if i % 25 == 0:
                    print(f"epoch {epoch} batch {i} loss {loss.item():.4f}", flush=True)
            self.sched.step()
            self.modes(False)
            with torch.no_grad():
                v = [self.losses(f.to(self.device)).item() for f in self.val_loader]
            print(f"epoch {epoch} validation {sum(v) / len(v):.4f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=12)
    ap.add_argument("--height", type=int, default=192)
    ap.add_argument("--width", type=int, default=640)
    ap.add_argument("--samples", type=int, default=960)
    ap.add_argument("--epochs", type=int, default=2)
    Trainer(ap.parse_args()).run()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
