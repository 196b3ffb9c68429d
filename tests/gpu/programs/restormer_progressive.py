"""Restormer image deraining with progressive patch and batch sizes (after swz30/Restormer), fp16 autocast."""
import os
import random
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from einops import rearrange
from torch.utils.data import DataLoader, Dataset

# progressive training: (iterations, patch, batch)
STAGES = [(30, 128, 8), (20, 160, 5), (15, 192, 4), (12, 256, 2)]
VAL_SIZE = (320, 480)
VAL_IMAGES = 6
DIM = 48
BLOCKS = [2, 3, 3, 4]
REFINE = 2


class WithBiasLayerNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        h, w = x.shape[-2:]
        x = rearrange(x, 'b c h w -> b (h w) c')
        mu = x.mean(-1, keepdim=True)
        sigma = x.var(-1, keepdim=True, unbiased=False)
        x = (x - mu) / torch.sqrt(sigma + 1e-5) * self.weight + self.bias
        return rearrange(x, 'b (h w) c -> b c h w', h=h, w=w)


class FeedForward(nn.Module):
    def __init__(self, dim, factor=2.66):
        super().__init__()
        hidden = int(dim * factor)
        self.project_in = nn.Conv2d(dim, hidden * 2, 1, bias=False)
        self.dwconv = nn.Conv2d(hidden * 2, hidden * 2, 3, padding=1, groups=hidden * 2, bias=False)
        self.project_out = nn.Conv2d(hidden, dim, 1, bias=False)

    def forward(self, x):
        x1, x2 = self.dwconv(self.project_in(x)).chunk(2, dim=1)
        return self.project_out(F.gelu(x1) * x2)


class Attention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.temperature = nn.Parameter(torch.ones(num_heads, 1, 1))
        self.qkv = nn.Conv2d(dim, dim * 3, 1, bias=False)
        self.qkv_dwconv = nn.Conv2d(dim * 3, dim * 3, 3, padding=1, groups=dim * 3, bias=False)
        self.project_out = nn.Conv2d(dim, dim, 1, bias=False)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv_dwconv(self.qkv(x)).chunk(3, dim=1)
        q = rearrange(q, 'b (head c) h w -> b head c (h w)', head=self.num_heads)
        k = rearrange(k, 'b (head c) h w -> b head c (h w)', head=self.num_heads)
        v = rearrange(v, 'b (head c) h w -> b head c (h w)', head=self.num_heads)
        q = F.normalize(q, dim=-1)
        k = F.normalize(k, dim=-1)
        attn = (q @ k.transpose(-2, -1)) * self.temperature
        out = attn.softmax(dim=-1) @ v
        out = rearrange(out, 'b head c (h w) -> b (head c) h w', head=self.num_heads, h=h, w=w)
        return self.project_out(out)


class TransformerBlock(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.norm1, self.attn = WithBiasLayerNorm(dim), Attention(dim, num_heads)
        self.norm2, self.ffn = WithBiasLayerNorm(dim), FeedForward(dim)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.ffn(self.norm2(x))


def down(c):
    return nn.Sequential(nn.Conv2d(c, c // 2, 3, padding=1, bias=False), nn.PixelUnshuffle(2))


def up(c):
    return nn.Sequential(nn.Conv2d(c, c * 2, 3, padding=1, bias=False), nn.PixelShuffle(2))


class Restormer(nn.Module):
    def __init__(self, dim=48, blocks=(4, 6, 6, 8), refine=4, heads=(1, 2, 4, 8)):
        super().__init__()
        stage = lambda d, h, n: nn.Sequential(*[TransformerBlock(d, h) for _ in range(n)])
        self.patch_embed = nn.Conv2d(3, dim, 3, padding=1, bias=False)
        self.enc1, self.down1 = stage(dim, heads[0], blocks[0]), down(dim)
        self.enc2, self.down2 = stage(dim * 2, heads[1], blocks[1]), down(dim * 2)
        self.enc3, self.down3 = stage(dim * 4, heads[2], blocks[2]), down(dim * 4)
        self.latent = stage(dim * 8, heads[3], blocks[3])
        self.up3, self.red3, self.dec3 = up(dim * 8), nn.Conv2d(dim * 8, dim * 4, 1, bias=False), stage(dim * 4, heads[2], blocks[2])
        self.up2, self.red2, self.dec2 = up(dim * 4), nn.Conv2d(dim * 4, dim * 2, 1, bias=False), stage(dim * 2, heads[1], blocks[1])
        self.up1, self.dec1 = up(dim * 2), stage(dim * 2, heads[0], blocks[0])
        self.refinement = stage(dim * 2, heads[0], refine)
        self.output = nn.Conv2d(dim * 2, 3, 3, padding=1, bias=False)

    def forward(self, img):
        e1 = self.enc1(self.patch_embed(img))
        e2 = self.enc2(self.down1(e1))
        e3 = self.enc3(self.down2(e2))
        lat = self.latent(self.down3(e3))
        d3 = self.dec3(self.red3(torch.cat([self.up3(lat), e3], 1)))
        d2 = self.dec2(self.red2(torch.cat([self.up2(d3), e2], 1)))
        d1 = self.dec1(torch.cat([self.up1(d2), e1], 1))
        return self.output(self.refinement(d1)) + img


class Rain(Dataset):
    def __init__(self, n, size, seed):
        self.n, self.size, self.seed = n, size, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed + i)
        h, w = self.size
        clean = F.interpolate(torch.rand(1, 3, h // 16, w // 16, generator=g), size=(h, w), mode='bicubic')[0].clamp(0, 1)
        streak = (torch.rand(1, h // 8, w, generator=g) > 0.97).float().repeat_interleave(8, 1)
        return (clean + 0.4 * streak).clamp(0, 1), clean


def psnr(a, b):
    return -10 * torch.log10(F.mse_loss(a.clamp(0, 1), b))


def main():
    random.seed(100)
    torch.manual_seed(100)
    device = torch.device("cuda")
    torch.backends.cudnn.benchmark = True
    net = Restormer(DIM, BLOCKS, REFINE).to(device)
    print(f'{sum(p.numel() for p in net.parameters()) / 1e6:.1f} M parameters')
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4, weight_decay=1e-4, betas=(0.9, 0.999))
    total = sum(s[0] for s in STAGES)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, total, eta_min=1e-6)
    scaler = torch.amp.GradScaler("cuda")
    val_loader = DataLoader(Rain(VAL_IMAGES, VAL_SIZE, 10 ** 6), batch_size=1)
    out_dir = tempfile.mkdtemp()
    it = 0
    for stage, (iters, patch, batch) in enumerate(STAGES):
        print(f'Updating patch size to {patch} and batch size to {batch}')
        loader = DataLoader(Rain(iters * batch, (patch, patch), stage * 10 ** 4), batch_size=batch, shuffle=True,
                            num_workers=2, pin_memory=True)
        net.train()
        for lq, gt in loader:
            lq, gt = lq.to(device, non_blocking=True), gt.to(device, non_blocking=True)
            opt.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                pred = net(lq)
                loss = F.l1_loss(pred, gt)
            scaler.scale(loss).backward()
            scaler.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.01)
            scaler.step(opt)
            scaler.update()
            sched.step()
            it += 1
            if it % 10 == 0:
                print(f'iter {it}/{total} lr {sched.get_last_lr()[0]:.2e} l_pix {loss.item():.4f}')
        net.eval()
        score = 0.0
        with torch.no_grad():
            for lq, gt in val_loader:
                score += psnr(net(lq.to(device)), gt.to(device)).item()
        print(f'stage {stage} val psnr {score / len(val_loader):.2f}')
        torch.save({'params': net.state_dict(), 'iter': it}, os.path.join(out_dir, f'net_g_{it}.pth'))


if __name__ == '__main__':
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
