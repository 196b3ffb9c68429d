"""PSMNet stacked hourglass stereo matching (after JiaRenChang/PSMNet)."""
from __future__ import print_function
import argparse
import os
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description='PSMNet')
parser.add_argument('--maxdisp', type=int, default=128, help='maximum disparity')
parser.add_argument('--epochs', type=int, default=2)
parser.add_argument('--batch', type=int, default=2)
parser.add_argument('--crop-h', type=int, default=256)
parser.add_argument('--crop-w', type=int, default=512)
parser.add_argument('--test-h', type=int, default=320)
parser.add_argument('--test-w', type=int, default=640)
parser.add_argument('--ntrain', type=int, default=48)
parser.add_argument('--ntest', type=int, default=6)
parser.add_argument('--savemodel', default=tempfile.mkdtemp())
parser.add_argument('--no-cuda', action='store_true', default=False)
parser.add_argument('--seed', type=int, default=1)
args = parser.parse_args()
args.cuda = not args.no_cuda and torch.cuda.is_available()
torch.manual_seed(args.seed)


def convbn(i, o, k, s, p, d):
    return nn.Sequential(nn.Conv2d(i, o, k, s, padding=d if d > 1 else p, dilation=d, bias=False), nn.BatchNorm2d(o))


def convbn_3d(i, o, k, s, p):
    return nn.Sequential(nn.Conv3d(i, o, k, s, p, bias=False), nn.BatchNorm3d(o))


class BasicBlock(nn.Module):
    def __init__(self, inplanes, planes, stride, downsample, pad, dilation):
        super(BasicBlock, self).__init__()
        self.conv1 = nn.Sequential(convbn(inplanes, planes, 3, stride, pad, dilation), nn.ReLU(inplace=True))
        self.conv2 = convbn(planes, planes, 3, 1, pad, dilation)
        self.downsample = downsample

    def forward(self, x):
        out = self.conv2(self.conv1(x))
        if self.downsample is not None:
            x = self.downsample(x)
        out += x
        return out


class FeatureExtraction(nn.Module):
    def __init__(self):
        super().__init__()
        self.inplanes = 32
        self.firstconv = nn.Sequential(convbn(3, 32, 3, 2, 1, 1), nn.ReLU(inplace=True),
                                       convbn(32, 32, 3, 1, 1, 1), nn.ReLU(inplace=True),
                                       convbn(32, 32, 3, 1, 1, 1), nn.ReLU(inplace=True))
        self.layer1 = self._make_layer(32, 3, 1, 1, 1)
        self.layer2 = self._make_layer(64, 16, 2, 1, 1)
        self.layer3 = self._make_layer(128, 3, 1, 1, 1)
        self.layer4 = self._make_layer(128, 3, 1, 1, 2)
        self.branches = nn.ModuleList(nn.Sequential(nn.AvgPool2d((k, k), stride=(k, k)), convbn(128, 32, 1, 1, 0, 1),
                                                    nn.ReLU(inplace=True)) for k in (64, 32, 16, 8))
        self.lastconv = nn.Sequential(convbn(320, 128, 3, 1, 1, 1), nn.ReLU(inplace=True),
                                      nn.Conv2d(128, 32, kernel_size=1, padding=0, stride=1, bias=False))

    def _make_layer(self, planes, blocks, stride, pad, dilation):
        downsample = None
        if stride != 1 or self.inplanes != planes:
            downsample = nn.Sequential(nn.Conv2d(self.inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))
        layers = [BasicBlock(self.inplanes, planes, stride, downsample, pad, dilation)]
        self.inplanes = planes
        for i in range(1, blocks):
            layers.append(BasicBlock(self.inplanes, planes, 1, None, pad, dilation))
        return nn.Sequential(*layers)

    def forward(self, x):
        output = self.layer1(self.firstconv(x))
        output_raw = self.layer2(output)
        output_skip = self.layer4(self.layer3(output_raw))
        size = output_skip.shape[2:]
        bs = [F.interpolate(b(output_skip), size, mode='bilinear') for b in self.branches]
        return self.lastconv(torch.cat([output_raw, output_skip] + bs[::-1], 1))


class Hourglass(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv1 = nn.Sequential(convbn_3d(c, c * 2, 3, 2, 1), nn.ReLU(inplace=True))
        self.conv2 = convbn_3d(c * 2, c * 2, 3, 1, 1)
        self.conv3 = nn.Sequential(convbn_3d(c * 2, c * 2, 3, 2, 1), nn.ReLU(inplace=True))
        self.conv4 = nn.Sequential(convbn_3d(c * 2, c * 2, 3, 1, 1), nn.ReLU(inplace=True))
        self.conv5 = nn.Sequential(nn.ConvTranspose3d(c * 2, c * 2, 3, padding=1, output_padding=1, stride=2, bias=False),
                                   nn.BatchNorm3d(c * 2))
        self.conv6 = nn.Sequential(nn.ConvTranspose3d(c * 2, c, 3, padding=1, output_padding=1, stride=2, bias=False),
                                   nn.BatchNorm3d(c))

    def forward(self, x, presqu, postsqu):
        out = self.conv1(x)
        pre = self.conv2(out)
        pre = F.relu(pre + postsqu, inplace=True) if postsqu is not None else F.relu(pre, inplace=True)
        out = self.conv4(self.conv3(pre))
        post = F.relu(self.conv5(out) + (presqu if presqu is not None else pre), inplace=True)
        return self.conv6(post), pre, post


class PSMNet(nn.Module):
    def __init__(self, maxdisp):
        super().__init__()
        self.maxdisp = maxdisp
        self.feature_extraction = FeatureExtraction()
        self.dres0 = nn.Sequential(convbn_3d(64, 32, 3, 1, 1), nn.ReLU(inplace=True), convbn_3d(32, 32, 3, 1, 1),
                                   nn.ReLU(inplace=True))
        self.dres1 = nn.Sequential(convbn_3d(32, 32, 3, 1, 1), nn.ReLU(inplace=True), convbn_3d(32, 32, 3, 1, 1))
        self.dres2, self.dres3, self.dres4 = Hourglass(32), Hourglass(32), Hourglass(32)
        head = lambda: nn.Sequential(convbn_3d(32, 32, 3, 1, 1), nn.ReLU(inplace=True),
                                     nn.Conv3d(32, 1, kernel_size=3, padding=1, stride=1, bias=False))
        self.classif1, self.classif2, self.classif3 = head(), head(), head()

    def regress(self, cost, h, w):
        cost = F.interpolate(cost, [self.maxdisp, h, w], mode='trilinear')
        pred = F.softmax(torch.squeeze(cost, 1), dim=1)
        disp = torch.arange(self.maxdisp, device=pred.device, dtype=pred.dtype).view(1, -1, 1, 1)
        return torch.sum(pred * disp, 1)

    def forward(self, left, right):
        refimg_fea = self.feature_extraction(left)
        targetimg_fea = self.feature_extraction(right)
        b, c, h, w = refimg_fea.shape
        cost = refimg_fea.new_zeros(b, c * 2, self.maxdisp // 4, h, w)
        for i in range(self.maxdisp // 4):
            if i > 0:
                cost[:, :c, i, :, i:] = refimg_fea[:, :, :, i:]
                cost[:, c:, i, :, i:] = targetimg_fea[:, :, :, :-i]
            else:
                cost[:, :c, i, :, :] = refimg_fea
                cost[:, c:, i, :, :] = targetimg_fea
        cost = cost.contiguous()
        cost0 = self.dres0(cost)
        cost0 = self.dres1(cost0) + cost0
        out1, pre1, post1 = self.dres2(cost0, None, None)
        out1 = out1 + cost0
        out2, pre2, post2 = self.dres3(out1, pre1, post1)
        out2 = out2 + cost0
        out3, pre3, post3 = self.dres4(out2, pre1, post2)
        out3 = out3 + cost0
        cost1 = self.classif1(out1)
        cost2 = self.classif2(out2) + cost1
        cost3 = self.classif3(out3) + cost2
        H, W = left.shape[2:]
        pred3 = self.regress(cost3, H, W)
        if self.training:
            return self.regress(cost1, H, W), self.regress(cost2, H, W), pred3
        return pred3


class SceneFlowLike(Dataset):
    def __init__(self, n, h, w, seed):
        self.n, self.h, self.w, self.seed = n, h, w, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed + i)
        base = torch.rand(1, 3, self.h // 4, self.w // 4 + 32, generator=g)
        base = F.interpolate(base, size=(self.h, self.w + 128), mode='bilinear')[0]
        d = int(torch.randint(1, 100, (1,), generator=g))
        return base[:, :, :self.w], base[:, :, d:self.w + d], torch.full((self.h, self.w), float(d))


TrainImgLoader = DataLoader(SceneFlowLike(args.ntrain, args.crop_h, args.crop_w, 0), batch_size=args.batch, shuffle=True,
                            num_workers=1, drop_last=False)
TestImgLoader = DataLoader(SceneFlowLike(args.ntest, args.test_h, args.test_w, 777), batch_size=1, shuffle=False,
                           num_workers=1, drop_last=False)
model = PSMNet(args.maxdisp)
if args.cuda:
    model = nn.DataParallel(model)
    model.cuda()
print('Number of model parameters: {}'.format(sum([p.data.nelement() for p in model.parameters()])))
optimizer = optim.Adam(model.parameters(), lr=0.001, betas=(0.9, 0.999))


def train(imgL, imgR, disp_true):
    model.train()
    if args.cuda:
        imgL, imgR, disp_true = imgL.cuda(), imgR.cuda(), disp_true.cuda()
    mask = disp_true < args.maxdisp
    mask.detach_()
    optimizer.zero_grad()
    output1, output2, output3 = model(imgL, imgR)
    loss = 0.5 * F.smooth_l1_loss(output1[mask], disp_true[mask]) + 0.7 * F.smooth_l1_loss(output2[mask], disp_true[mask]) \
        + F.smooth_l1_loss(output3[mask], disp_true[mask])
    loss.backward()
    optimizer.step()
    return loss.data.item()


def test(imgL, imgR, disp_true):
    model.eval()
    if args.cuda:
        imgL, imgR, disp_true = imgL.cuda(), imgR.cuda(), disp_true.cuda()
    mask = disp_true < args.maxdisp
    with torch.no_grad():
        output3 = model(imgL, imgR)
    return F.l1_loss(output3[mask], disp_true[mask]).item()


def adjust_learning_rate(optimizer, epoch):
    for param_group in optimizer.param_groups:
        param_group['lr'] = 0.001


def main():
    start_full_time = time.time()
    for epoch in range(args.epochs):
        total_train_loss = 0
        adjust_learning_rate(optimizer, epoch)
        for batch_idx, (imgL, imgR, disp) in enumerate(TrainImgLoader):
            start_time = time.time()
            loss = train(imgL, imgR, disp)
            if batch_idx % 5 == 0:
                print('Iter %d training loss = %.3f , time = %.2f' % (batch_idx, loss, time.time() - start_time))
            total_train_loss += loss
        print('epoch %d total training loss = %.3f' % (epoch, total_train_loss / len(TrainImgLoader)))
        torch.save({'epoch': epoch, 'state_dict': model.state_dict(), 'train_loss': total_train_loss / len(TrainImgLoader)},
                   os.path.join(args.savemodel, 'checkpoint_' + str(epoch) + '.tar'))
        total = sum(test(*b) for b in TestImgLoader)
        print('epoch %d test EPE %.3f' % (epoch, total / len(TestImgLoader)))
    print('full training time = %.2f s' % (time.time() - start_full_time))


if __name__ == '__main__':
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
