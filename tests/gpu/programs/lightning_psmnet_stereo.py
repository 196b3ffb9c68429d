"""PSMNet stacked hourglass stereo matching on random crops (SceneFlow-like), Lightning, fp32."""
import argparse
import tempfile

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


def convbn(i, o, k, stride, pad, dil=1):
    return nn.Sequential(nn.Conv2d(i, o, k, stride, dil if dil > 1 else pad, dil, bias=False), nn.BatchNorm2d(o))


def convbn_3d(i, o, k, stride, pad):
    return nn.Sequential(nn.Conv3d(i, o, k, stride, pad, bias=False), nn.BatchNorm3d(o))


class BasicBlock(nn.Module):
    def __init__(self, i, o, stride, down, pad, dil):
        super().__init__()
        self.conv1 = nn.Sequential(convbn(i, o, 3, stride, pad, dil), nn.ReLU(inplace=True))
        self.conv2 = convbn(o, o, 3, 1, pad, dil)
        self.down = down

    def forward(self, x):
        out = self.conv2(self.conv1(x))
        return out + (self.down(x) if self.down is not None else x)


class FeatureExtraction(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = 32
        self.firstconv = nn.Sequential(convbn(3, 32, 3, 2, 1), nn.ReLU(inplace=True), convbn(32, 32, 3, 1, 1), nn.ReLU(inplace=True),
                                       convbn(32, 32, 3, 1, 1), nn.ReLU(inplace=True))
        self.layer1, self.layer2 = self._make(32, 3, 1, 1, 1), self._make(64, 8, 2, 1, 1)
        self.layer3, self.layer4 = self._make(128, 3, 1, 1, 1), self._make(128, 3, 1, 1, 2)
        self.branches = nn.ModuleList([nn.Sequential(nn.AvgPool2d(k, k), convbn(128, 32, 1, 1, 0), nn.ReLU(inplace=True)) for k in (32, 16, 8, 4)])
        self.last = nn.Sequential(convbn(320, 128, 3, 1, 1), nn.ReLU(inplace=True), nn.Conv2d(128, 32, 1, bias=False))

    def _make(self, planes, blocks, stride, pad, dil):
        down = convbn(self.inp, planes, 1, stride, 0) if stride != 1 or self.inp != planes else None
        layers = [BasicBlock(self.inp, planes, stride, down, pad, dil)]
        self.inp = planes
        layers += [BasicBlock(planes, planes, 1, None, pad, dil) for _ in range(1, blocks)]
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.layer1(self.firstconv(x))
        raw = self.layer2(x)
        skip = self.layer4(self.layer3(raw))
        outs = [F.interpolate(b(skip), skip.shape[-2:], mode="bilinear", align_corners=False) for b in self.branches]
        return self.last(torch.cat([raw, skip] + outs, 1))


class Hourglass(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv1 = nn.Sequential(convbn_3d(c, c * 2, 3, 2, 1), nn.ReLU(inplace=True))
        self.conv2 = convbn_3d(c * 2, c * 2, 3, 1, 1)
        self.conv3 = nn.Sequential(convbn_3d(c * 2, c * 2, 3, 2, 1), nn.ReLU(inplace=True))
        self.conv4 = nn.Sequential(convbn_3d(c * 2, c * 2, 3, 1, 1), nn.ReLU(inplace=True))
        self.conv5 = nn.Sequential(nn.ConvTranspose3d(c * 2, c * 2, 3, padding=1, output_padding=1, stride=2, bias=False), nn.BatchNorm3d(c * 2))
        self.conv6 = nn.Sequential(nn.ConvTranspose3d(c * 2, c, 3, padding=1, output_padding=1, stride=2, bias=False), nn.BatchNorm3d(c))

    def forward(self, x, presqu, postsqu):
        out = self.conv1(x)
        pre = self.conv2(out)
        pre = F.relu(pre + postsqu if postsqu is not None else pre, inplace=True)
        out = self.conv4(self.conv3(pre))
        post = F.relu(self.conv5(out) + (presqu if presqu is not None else pre), inplace=True)
        return self.conv6(post), pre, post


class PSMNet(nn.Module):
    def __init__(self, maxdisp):
        super().__init__()
        self.maxdisp = maxdisp
        self.feature = FeatureExtraction()
        self.dres0 = nn.Sequential(convbn_3d(64, 32, 3, 1, 1), nn.ReLU(inplace=True), convbn_3d(32, 32, 3, 1, 1), nn.ReLU(inplace=True))
        self.dres1 = nn.Sequential(convbn_3d(32, 32, 3, 1, 1), nn.ReLU(inplace=True), convbn_3d(32, 32, 3, 1, 1))
        self.hg1, self.hg2, self.hg3 = Hourglass(32), Hourglass(32), Hourglass(32)
        self.cls = nn.ModuleList([nn.Sequential(convbn_3d(32, 32, 3, 1, 1), nn.ReLU(inplace=True), nn.Conv3d(32, 1, 3, padding=1, bias=False)) for _ in range(3)])

    def regress(self, cost, size):
        cost = F.interpolate(cost, [self.maxdisp, *size], mode="trilinear", align_corners=False).squeeze(1)
        disp = torch.arange(self.maxdisp, device=cost.device, dtype=cost.dtype).view(1, -1, 1, 1)
        return torch.sum(F.softmax(cost, 1) * disp, 1)

    def forward(self, left, right):
        ref, tgt = self.feature(left), self.feature(right)
        b, c, h, w = ref.shape
        cost = ref.new_zeros(b, c * 2, self.maxdisp // 4, h, w)
        for i in range(self.maxdisp // 4):
            if i > 0:
                cost[:, :c, i, :, i:] = ref[:, :, :, i:]
                cost[:, c:, i, :, i:] = tgt[:, :, :, :-i]
            else:
                cost[:, :c, i], cost[:, c:, i] = ref, tgt
        cost = cost.contiguous()
        cost0 = self.dres0(cost)
        cost0 = self.dres1(cost0) + cost0
        out1, pre1, post1 = self.hg1(cost0, None, None)
        out1 = out1 + cost0
        out2, _, post2 = self.hg2(out1, pre1, post1)
        out2 = out2 + cost0
        out3, _, _ = self.hg3(out2, pre1, post2)
        out3 = out3 + cost0
        c1 = self.cls[0](out1)
        c2 = self.cls[1](out2) + c1
        c3 = self.cls[2](out3) + c2
        size = left.shape[-2:]
        if self.training:
            return self.regress(c1, size), self.regress(c2, size), self.regress(c3, size)
        return self.regress(c3, size)


class Stereo(L.LightningModule):
    def __init__(self, maxdisp, lr):
        super().__init__()
        self.save_hyperparameters()
        self.model = PSMNet(maxdisp)

    def training_step(self, batch, _):
        left, right, disp = batch
        mask = disp < self.hparams.maxdisp
        o1, o2, o3 = self.model(left, right)
        loss = 0.5 * F.smooth_l1_loss(o1[mask], disp[mask]) + 0.7 * F.smooth_l1_loss(o2[mask], disp[mask]) + F.smooth_l1_loss(o3[mask], disp[mask])
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, _):
        left, right, disp = batch
        mask = disp < self.hparams.maxdisp
        out = self.model(left, right)
        err = (out[mask] - disp[mask]).abs()
        self.log_dict({"val_epe": err.mean(), "val_3px": (err > 3).float().mean()}, prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr, betas=(0.9, 0.999))


class SceneFlow(Dataset):
    def __init__(self, n, h, w, maxdisp, seed):
        self.n, self.h, self.w, self.maxdisp, self.seed = n, h, w, maxdisp, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 1000 + i)
        left = F.interpolate(torch.rand(1, 3, self.h // 4, self.w // 4, generator=g), size=(self.h, self.w))[0]
        d = float(torch.rand((), generator=g)) * self.maxdisp * 0.9
        disp = d + 4 * F.interpolate(torch.rand(1, 1, 8, 8, generator=g), size=(self.h, self.w), mode="bilinear")[0, 0]
        return left, left.roll(-int(d), -1), disp


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--height", type=int, default=256)
    ap.add_argument("--width", type=int, default=512)
    ap.add_argument("--maxdisp", type=int, default=192)
    ap.add_argument("--batch", type=int, default=2)
    ap.add_argument("--n", type=int, default=60)
    ap.add_argument("--epochs", type=int, default=1)
    a = ap.parse_args()
    L.seed_everything(1)
    train = DataLoader(SceneFlow(a.n, a.height, a.width, a.maxdisp, 0), batch_size=a.batch, shuffle=True, num_workers=1, drop_last=True)
    val = DataLoader(SceneFlow(max(a.n // 10, 1), a.height, a.width, a.maxdisp, 1), batch_size=1, num_workers=1)
    tmp = tempfile.mkdtemp()
    trainer = L.Trainer(max_epochs=a.epochs, accelerator="auto", devices=1, logger=False, default_root_dir=tmp,
                        callbacks=[L.pytorch.callbacks.ModelCheckpoint(dirpath=tmp, monitor="val_epe", save_top_k=1)])
    trainer.fit(Stereo(a.maxdisp, 1e-3), train, val)
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
