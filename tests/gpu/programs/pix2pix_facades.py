# SPDX-License-Identifier: Apache-2.0
"""pix2pix: U-Net generator with skips and dropout, 70x70 PatchGAN, LSGAN + L1, fp32, linear lr decay; no validation."""
import argparse
import functools
import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--n_epochs", type=int, default=1, help="epochs with the initial learning rate")
parser.add_argument("--n_epochs_decay", type=int, default=1, help="epochs to decay to zero")
parser.add_argument("--lr", type=float, default=0.0002)
parser.add_argument("--beta1", type=float, default=0.5)
parser.add_argument("--lambda_L1", type=float, default=100.0)
opt = parser.parse_args()

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
size, downs, ngf = (32, 5, 8) if SMALL else (256, 8, 64)
if SMALL:
    opt.batch_size = min(opt.batch_size, 2)
torch.manual_seed(0)


class Facades(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        labels = torch.randint(-1, 2, (3, size // 8, size // 8)).float()
        a = nn.functional.interpolate(labels[None], scale_factor=8)[0]
        return {"A": a, "B": (a + 0.1 * torch.randn_like(a)).clamp(-1, 1)}


class UnetSkip(nn.Module):
    def __init__(self, outer_nc, inner_nc, input_nc=None, sub=None, outermost=False, innermost=False, norm=nn.BatchNorm2d, dropout=False):
        super().__init__()
        self.outermost = outermost
        input_nc = input_nc or outer_nc
        down = nn.Conv2d(input_nc, inner_nc, 4, 2, 1, bias=False)
        if outermost:
            model = [down, sub, nn.ReLU(True), nn.ConvTranspose2d(inner_nc * 2, outer_nc, 4, 2, 1), nn.Tanh()]
        elif innermost:
            model = [nn.LeakyReLU(0.2, True), down, nn.ReLU(True), nn.ConvTranspose2d(inner_nc, outer_nc, 4, 2, 1, bias=False), norm(outer_nc)]
        else:
            model = [nn.LeakyReLU(0.2, True), down, norm(inner_nc), sub, nn.ReLU(True), nn.ConvTranspose2d(inner_nc * 2, outer_nc, 4, 2, 1, bias=False), norm(outer_nc)]
            if dropout:
                model.append(nn.Dropout(0.5))
        self.model = nn.Sequential(*model)

    def forward(self, x):
        return self.model(x) if self.outermost else torch.cat([x, self.model(x)], 1)


def define_G(num_downs, ngf):
    block = UnetSkip(ngf * 8, ngf * 8, innermost=True)
    for _ in range(num_downs - 5):
        block = UnetSkip(ngf * 8, ngf * 8, sub=block, dropout=True)
    block = UnetSkip(ngf * 4, ngf * 8, sub=block)
    block = UnetSkip(ngf * 2, ngf * 4, sub=block)
    block = UnetSkip(ngf, ngf * 2, sub=block)
    return UnetSkip(3, ngf, input_nc=3, sub=block, outermost=True)


def define_D(input_nc, ndf, n_layers=3):
    seq = [nn.Conv2d(input_nc, ndf, 4, 2, 1), nn.LeakyReLU(0.2, True)]
    mult = 1
    for n in range(1, n_layers + 1):
        prev, mult = mult, min(2 ** n, 8)
        stride = 2 if n < n_layers else 1
        seq += [nn.Conv2d(ndf * prev, ndf * mult, 4, stride, 1, bias=False), nn.BatchNorm2d(ndf * mult), nn.LeakyReLU(0.2, True)]
    return nn.Sequential(*seq, nn.Conv2d(ndf * mult, 1, 4, 1, 1))


def init_weights(m, gain=0.02):
    if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(m.weight, 0.0, gain)
    elif isinstance(m, nn.BatchNorm2d):
        nn.init.normal_(m.weight, 1.0, gain)


def set_requires_grad(net, flag):
    for p in net.parameters():
        p.requires_grad = flag


netG = define_G(downs, ngf).apply(init_weights).to(device)
netD = define_D(6, ngf, 2 if SMALL else 3).apply(init_weights).to(device)
criterionGAN, criterionL1 = nn.MSELoss(), nn.L1Loss()
make = functools.partial(torch.optim.Adam, lr=opt.lr, betas=(opt.beta1, 0.999))
optimizer_G, optimizer_D = make(netG.parameters()), make(netD.parameters())
rule = lambda epoch: 1.0 - max(0, epoch + 1 - opt.n_epochs) / float(opt.n_epochs_decay + 1)
schedulers = [torch.optim.lr_scheduler.LambdaLR(o, lr_lambda=rule) for o in (optimizer_G, optimizer_D)]
loader = DataLoader(Facades(opt.batch_size * (2 if SMALL else 8)), batch_size=opt.batch_size, shuffle=True, num_workers=0 if SMALL else 4)

for epoch in range(1, opt.n_epochs + opt.n_epochs_decay + 1):
    for i, data in enumerate(loader):
        real_A, real_B = data["A"].to(device), data["B"].to(device)
        fake_B = netG(real_A)
        # update D
        set_requires_grad(netD, True)
        optimizer_D.zero_grad()
        pred_fake = netD(torch.cat((real_A, fake_B), 1).detach())
        loss_D_fake = criterionGAN(pred_fake, torch.zeros_like(pred_fake))
        pred_real = netD(torch.cat((real_A, real_B), 1))
        loss_D_real = criterionGAN(pred_real, torch.ones_like(pred_real))
        loss_D = (loss_D_fake + loss_D_real) * 0.5
        loss_D.backward()
        optimizer_D.step()
        # update G
        set_requires_grad(netD, False)
        optimizer_G.zero_grad()
        pred_fake = netD(torch.cat((real_A, fake_B), 1))
        loss_G_GAN = criterionGAN(pred_fake, torch.ones_like(pred_fake))
        loss_G_L1 = criterionL1(fake_B, real_B) * opt.lambda_L1
        loss_G = loss_G_GAN + loss_G_L1
        loss_G.backward()
        optimizer_G.step()
    for s in schedulers:
        s.step()
    print("(epoch: %d, lr: %.6f) G_GAN: %.3f G_L1: %.3f D_real: %.3f D_fake: %.3f" % (epoch, optimizer_G.param_groups[0]["lr"], loss_G_GAN, loss_G_L1, loss_D_real, loss_D_fake))

if torch.cuda.is_available():
    s = torch.cuda.memory_stats()
    print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
