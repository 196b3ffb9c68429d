# U-2-Net salient object detection, deep supervision over seven maps (after xuebinqin/U-2-Net)
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset


class REBNCONV(nn.Module):
    def __init__(self, in_ch=3, out_ch=3, dirate=1):
        super(REBNCONV, self).__init__()
        self.conv_s1 = nn.Conv2d(in_ch, out_ch, 3, padding=1 * dirate, dilation=1 * dirate)
        self.bn_s1 = nn.BatchNorm2d(out_ch)
        self.relu_s1 = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu_s1(self.bn_s1(self.conv_s1(x)))


def _upsample_like(src, tar):
    return F.interpolate(src, size=tar.shape[2:], mode='bilinear', align_corners=False)


class RSU(nn.Module):
    """Residual U-block of the given depth (RSU-7, -6, -5, -4)."""

    def __init__(self, depth, in_ch=3, mid_ch=12, out_ch=3):
        super().__init__()
        self.depth = depth
        self.rebnconvin = REBNCONV(in_ch, out_ch)
        self.enc = nn.ModuleList([REBNCONV(out_ch, mid_ch)] + [REBNCONV(mid_ch, mid_ch) for _ in range(depth - 2)])
        self.bottom = REBNCONV(mid_ch, mid_ch, dirate=2)
        self.dec = nn.ModuleList([REBNCONV(mid_ch * 2, mid_ch) for _ in range(depth - 2)] + [REBNCONV(mid_ch * 2, out_ch)])
        self.pool = nn.MaxPool2d(2, stride=2, ceil_mode=True)

    def forward(self, x):
        hxin = self.rebnconvin(x)
        hx = hxin
        skips = []
        for i, layer in enumerate(self.enc):
            hx = layer(hx)
            skips.append(hx)
            if i < len(self.enc) - 1:
                hx = self.pool(hx)
        hx = self.bottom(hx)
        for layer in self.dec:
            s = skips.pop()
            if hx.shape[2:] != s.shape[2:]:
                hx = _upsample_like(hx, s)
            hx = layer(torch.cat((hx, s), 1))
        return hx + hxin


class RSU4F(nn.Module):
    def __init__(self, in_ch=3, mid_ch=12, out_ch=3):
        super().__init__()
        self.rebnconvin = REBNCONV(in_ch, out_ch, dirate=1)
        self.rebnconv1 = REBNCONV(out_ch, mid_ch, dirate=1)
        self.rebnconv2 = REBNCONV(mid_ch, mid_ch, dirate=2)
        self.rebnconv3 = REBNCONV(mid_ch, mid_ch, dirate=4)
        self.rebnconv4 = REBNCONV(mid_ch, mid_ch, dirate=8)
        self.rebnconv3d = REBNCONV(mid_ch * 2, mid_ch, dirate=4)
        self.rebnconv2d = REBNCONV(mid_ch * 2, mid_ch, dirate=2)
        self.rebnconv1d = REBNCONV(mid_ch * 2, out_ch, dirate=1)

    def forward(self, x):
        hxin = self.rebnconvin(x)
        hx1 = self.rebnconv1(hxin)
        hx2 = self.rebnconv2(hx1)
        hx3 = self.rebnconv3(hx2)
        hx4 = self.rebnconv4(hx3)
        hx3d = self.rebnconv3d(torch.cat((hx4, hx3), 1))
        hx2d = self.rebnconv2d(torch.cat((hx3d, hx2), 1))
        hx1d = self.rebnconv1d(torch.cat((hx2d, hx1), 1))
        return hx1d + hxin


class U2NET(nn.Module):
    def __init__(self, in_ch=3, out_ch=1):
        super().__init__()
        self.stage1 = RSU(7, in_ch, 32, 64)
        self.stage2 = RSU(6, 64, 32, 128)
        self.stage3 = RSU(5, 128, 64, 256)
        self.stage4 = RSU(4, 256, 128, 512)
        self.stage5 = RSU4F(512, 256, 512)
        self.stage6 = RSU4F(512, 256, 512)
        self.pool = nn.MaxPool2d(2, stride=2, ceil_mode=True)
        self.stage5d = RSU4F(1024, 256, 512)
        self.stage4d = RSU(4, 1024, 128, 256)
        self.stage3d = RSU(5, 512, 64, 128)
        self.stage2d = RSU(6, 256, 32, 64)
        self.stage1d = RSU(7, 128, 16, 64)
        self.side1 = nn.Conv2d(64, out_ch, 3, padding=1)
        self.side2 = nn.Conv2d(64, out_ch, 3, padding=1)
        self.side3 = nn.Conv2d(128, out_ch, 3, padding=1)
        self.side4 = nn.Conv2d(256, out_ch, 3, padding=1)
        self.side5 = nn.Conv2d(512, out_ch, 3, padding=1)
        self.side6 = nn.Conv2d(512, out_ch, 3, padding=1)
        self.outconv = nn.Conv2d(6 * out_ch, out_ch, 1)

    def forward(self, x):
        hx1 = self.stage1(x)
        hx2 = self.stage2(self.pool(hx1))
        hx3 = self.stage3(self.pool(hx2))
        hx4 = self.stage4(self.pool(hx3))
        hx5 = self.stage5(self.pool(hx4))
        hx6 = self.stage6(self.pool(hx5))
        hx5d = self.stage5d(torch.cat((_upsample_like(hx6, hx5), hx5), 1))
        hx4d = self.stage4d(torch.cat((_upsample_like(hx5d, hx4), hx4), 1))
        hx3d = self.stage3d(torch.cat((_upsample_like(hx4d, hx3), hx3), 1))
        hx2d = self.stage2d(torch.cat((_upsample_like(hx3d, hx2), hx2), 1))
        hx1d = self.stage1d(torch.cat((_upsample_like(hx2d, hx1), hx1), 1))
        d1 = self.side1(hx1d)
        d2 = _upsample_like(self.side2(hx2d), d1)
        d3 = _upsample_like(self.side3(hx3d), d1)
        d4 = _upsample_like(self.side4(hx4d), d1)
        d5 = _upsample_like(self.side5(hx5d), d1)
        d6 = _upsample_like(self.side6(hx6), d1)
        d0 = self.outconv(torch.cat((d1, d2, d3, d4, d5, d6), 1))
        return tuple(torch.sigmoid(d) for d in (d0, d1, d2, d3, d4, d5, d6))


class SalObjDataset(Dataset):
    def __init__(self, n, size, seed):
        self.n, self.size, self.seed = n, size, seed
        ys, xs = np.mgrid[0:size, 0:size].astype(np.float32) / size
        self.ys, self.xs = ys, xs

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng(self.seed + i)
        cy, cx, ry, rx = rng.uniform(0.3, 0.7), rng.uniform(0.3, 0.7), rng.uniform(0.1, 0.3), rng.uniform(0.1, 0.3)
        m = (((self.ys - cy) / ry) ** 2 + ((self.xs - cx) / rx) ** 2 < 1).astype(np.float32)
        img = rng.standard_normal((3, 1, 1), dtype=np.float32) + 0.5 * m[None] + 0.3 * self.xs[None]
        return {'imidx': i, 'image': torch.from_numpy(img.astype(np.float32)), 'label': torch.from_numpy(m[None])}


bce_loss = nn.BCELoss(reduction='mean')


def muti_bce_loss_fusion(outs, labels_v):
    losses = [bce_loss(d, labels_v) for d in outs]
    loss = sum(losses)
    print("l0: %3f, l1: %3f, l2: %3f, l3: %3f, l4: %3f, l5: %3f, l6: %3f" % tuple(l.data.item() for l in losses))
    return losses[0], loss


epoch_num = 2
batch_size_train = 12
train_num = 240
val_num = 36
im_size = 288
save_frq = 15

if __name__ == '__main__':
    torch.manual_seed(0)
    model_dir = tempfile.mkdtemp()
    train_loader = DataLoader(SalObjDataset(train_num, im_size, 0), batch_size=batch_size_train, shuffle=True, num_workers=1)
    val_loader = DataLoader(SalObjDataset(val_num, im_size, 9000), batch_size=1, shuffle=False, num_workers=1)
    net = U2NET(3, 1)
    if torch.cuda.is_available():
        net.cuda()
    device = next(net.parameters()).device
    optimizer = optim.Adam(net.parameters(), lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0)

    ite_num = 0
    running_loss = running_tar_loss = 0.0
    ite_num4val = 0
    for epoch in range(epoch_num):
        net.train()
        for i, data in enumerate(train_loader):
            ite_num += 1
            ite_num4val += 1
            inputs, labels = data['image'].to(device), data['label'].to(device)
            optimizer.zero_grad()
            outs = net(inputs)
            loss2, loss = muti_bce_loss_fusion(outs, labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.data.item()
            running_tar_loss += loss2.data.item()
            del outs, loss2, loss
            print("[epoch: %3d/%3d, ite: %d] train loss: %3f, tar: %3f " % (
                epoch + 1, epoch_num, ite_num, running_loss / ite_num4val, running_tar_loss / ite_num4val))
            if ite_num % save_frq == 0:
                torch.save(net.state_dict(), os.path.join(model_dir, "u2net_bce_itr_%d.pth" % ite_num))
                running_loss = running_tar_loss = 0.0
                ite_num4val = 0
        net.eval()
        mae = 0.0
        with torch.no_grad():
            for data in val_loader:
                d0 = net(data['image'].to(device))[0]
                pred = (d0 - d0.min()) / (d0.max() - d0.min() + 1e-8)
                mae += (pred - data['label'].to(device)).abs().mean().item()
        print('epoch %d MAE %.4f' % (epoch + 1, mae / len(val_loader)))
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
