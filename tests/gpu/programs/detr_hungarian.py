"""DETR with a ResNet-50 backbone, Hungarian matching, auxiliary losses, images of different size padded in a batch."""
import argparse
import math
import random
import tempfile
import os

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import linear_sum_assignment
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet50
from torchvision.models._utils import IntermediateLayerGetter
from torchvision.ops import FrozenBatchNorm2d, box_convert, generalized_box_iou

parser = argparse.ArgumentParser()
parser.add_argument('--lr', default=1e-4, type=float)
parser.add_argument('--lr_backbone', default=1e-5, type=float)
parser.add_argument('--batch_size', default=4, type=int)
parser.add_argument('--weight_decay', default=1e-4, type=float)
parser.add_argument('--epochs', default=2, type=int)
parser.add_argument('--clip_max_norm', default=0.1, type=float)
parser.add_argument('--num_queries', default=100, type=int)
parser.add_argument('--num_images', default=96, type=int)
parser.add_argument('--min_side', default=480, type=int)
parser.add_argument('--eos_coef', default=0.1, type=float)
NUM_CLASSES = 20


class Shapes(Dataset):
    def __init__(self, n, min_side, seed):
        self.n, self.min_side, self.seed = n, min_side, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.RandomState(self.seed * 10007 + i)
        s = self.min_side + 32 * rng.randint(0, 5)
        h, w = (s, int(s * 4 / 3)) if rng.rand() < 0.6 else (int(s * 4 / 3), s)
        img = torch.full((3, h, w), float(rng.rand()) * 0.4)
        k = rng.randint(1, 12)
        boxes = np.zeros((k, 4), np.float32)
        labels = rng.randint(0, NUM_CLASSES, k)
        for j in range(k):
            bw, bh = rng.uniform(0.08, 0.5, 2)
            cx, cy = rng.uniform(bw / 2, 1 - bw / 2), rng.uniform(bh / 2, 1 - bh / 2)
            boxes[j] = cx, cy, bw, bh
            x0, x1, y0, y1 = int((cx - bw / 2) * w), int((cx + bw / 2) * w), int((cy - bh / 2) * h), int((cy + bh / 2) * h)
            img[labels[j] % 3, y0:y1, x0:x1] = 0.3 + labels[j] / 30
        return (img - 0.45) / 0.225, {'boxes': torch.from_numpy(boxes), 'labels': torch.from_numpy(labels).long()}


def collate_fn(batch):
    imgs, targets = zip(*batch)
    h, w = max(i.shape[1] for i in imgs), max(i.shape[2] for i in imgs)
    out = torch.zeros(len(imgs), 3, h, w)
    mask = torch.ones(len(imgs), h, w, dtype=torch.bool)
    for k, im in enumerate(imgs):
        out[k, :, :im.shape[1], :im.shape[2]].copy_(im)
        mask[k, :im.shape[1], :im.shape[2]] = False
    return out, mask, list(targets)


class PositionEmbeddingSine(nn.Module):
    def __init__(self, num_pos_feats=128, temperature=10000):
        super().__init__()
        self.num_pos_feats, self.temperature = num_pos_feats, temperature

    def forward(self, mask):
        not_mask = ~mask
        y_embed = not_mask.cumsum(1, dtype=torch.float32)
        x_embed = not_mask.cumsum(2, dtype=torch.float32)
        y_embed = y_embed / (y_embed[:, -1:, :] + 1e-6) * 2 * math.pi
        x_embed = x_embed / (x_embed[:, :, -1:] + 1e-6) * 2 * math.pi
        dim_t = torch.arange(self.num_pos_feats, dtype=torch.float32, device=mask.device)
        dim_t = self.temperature ** (2 * torch.div(dim_t, 2, rounding_mode='floor') / self.num_pos_feats)
        pos_x = x_embed[:, :, :, None] / dim_t
        pos_y = y_embed[:, :, :, None] / dim_t
        pos_x = torch.stack((pos_x[..., 0::2].sin(), pos_x[..., 1::2].cos()), dim=4).flatten(3)
        pos_y = torch.stack((pos_y[..., 0::2].sin(), pos_y[..., 1::2].cos()), dim=4).flatten(3)
        return torch.cat((pos_y, pos_x), dim=3).permute(0, 3, 1, 2)


class EncLayer(nn.Module):
    def __init__(self, d, nhead, ff=2048, p=0.1):
        super().__init__()
        self.attn = nn.MultiheadAttention(d, nhead, dropout=p)
        self.l1, self.l2 = nn.Linear(d, ff), nn.Linear(ff, d)
        self.n1, self.n2, self.drop = nn.LayerNorm(d), nn.LayerNorm(d), nn.Dropout(p)

    def forward(self, src, mask, pos):
        q = k = src + pos
        src = self.n1(src + self.drop(self.attn(q, k, src, key_padding_mask=mask)[0]))
        return self.n2(src + self.drop(self.l2(self.drop(F.relu(self.l1(src))))))


class DecLayer(nn.Module):
    def __init__(self, d, nhead, ff=2048, p=0.1):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d, nhead, dropout=p)
        self.cross = nn.MultiheadAttention(d, nhead, dropout=p)
        self.l1, self.l2 = nn.Linear(d, ff), nn.Linear(ff, d)
        self.n1, self.n2, self.n3, self.drop = nn.LayerNorm(d), nn.LayerNorm(d), nn.LayerNorm(d), nn.Dropout(p)

    def forward(self, tgt, memory, mask, pos, query_pos):
        q = k = tgt + query_pos
        tgt = self.n1(tgt + self.drop(self.self_attn(q, k, tgt)[0]))
        t2 = self.cross(tgt + query_pos, memory + pos, memory, key_padding_mask=mask)[0]
        tgt = self.n2(tgt + self.drop(t2))
        return self.n3(tgt + self.drop(self.l2(self.drop(F.relu(self.l1(tgt))))))


class MLP(nn.Module):
    def __init__(self, i, h, o, n):
        super().__init__()
        dims = [h] * (n - 1)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip([i] + dims, dims + [o]))

    def forward(self, x):
        for k, layer in enumerate(self.layers):
            x = F.relu(layer(x)) if k < len(self.layers) - 1 else layer(x)
        return x


class DETR(nn.Module):
    def __init__(self, num_classes, num_queries, d=256, nhead=8, enc=6, dec=6):
        super().__init__()
        net = resnet50(weights=None, replace_stride_with_dilation=[False, False, False], norm_layer=FrozenBatchNorm2d)
        for name, parameter in net.named_parameters():
            if 'layer2' not in name and 'layer3' not in name and 'layer4' not in name:
                parameter.requires_grad_(False)
        self.backbone = IntermediateLayerGetter(net, {'layer4': '0'})
        self.pos = PositionEmbeddingSine(d // 2)
        self.input_proj = nn.Conv2d(2048, d, 1)
        self.encoder = nn.ModuleList(EncLayer(d, nhead) for _ in range(enc))
        self.decoder = nn.ModuleList(DecLayer(d, nhead) for _ in range(dec))
        self.norm = nn.LayerNorm(d)
        self.query_embed = nn.Embedding(num_queries, d)
        self.class_embed = nn.Linear(d, num_classes + 1)
        self.bbox_embed = MLP(d, d, 4, 3)

    def forward(self, x, mask):
        f = self.backbone(x)['0']
        m = F.interpolate(mask[None].float(), size=f.shape[-2:]).to(torch.bool)[0]
        pos = self.pos(m).flatten(2).permute(2, 0, 1)
        src = self.input_proj(f).flatten(2).permute(2, 0, 1)
        m = m.flatten(1)
        for layer in self.encoder:
            src = layer(src, m, pos)
        q = self.query_embed.weight.unsqueeze(1).repeat(1, x.shape[0], 1)
        tgt = torch.zeros_like(q)
        inter = []
        for layer in self.decoder:
            tgt = layer(tgt, src, m, pos, q)
            inter.append(self.norm(tgt))
        hs = torch.stack(inter).transpose(1, 2)
        cls, box = self.class_embed(hs), self.bbox_embed(hs).sigmoid()
        out = {'pred_logits': cls[-1], 'pred_boxes': box[-1]}
        out['aux_outputs'] = [{'pred_logits': a, 'pred_boxes': b} for a, b in zip(cls[:-1], box[:-1])]
        return out


def xyxy(b):
    return box_convert(b, 'cxcywh', 'xyxy')


@torch.no_grad()
def matcher(outputs, targets):
    bs, nq = outputs['pred_logits'].shape[:2]
    prob = outputs['pred_logits'].flatten(0, 1).softmax(-1)
    out_bbox = outputs['pred_boxes'].flatten(0, 1)
    tgt_ids = torch.cat([v['labels'] for v in targets])
    tgt_bbox = torch.cat([v['boxes'] for v in targets])
    C = 5 * torch.cdist(out_bbox, tgt_bbox, p=1) - prob[:, tgt_ids] - 2 * generalized_box_iou(xyxy(out_bbox), xyxy(tgt_bbox))
    C = C.view(bs, nq, -1).cpu()
    sizes = [len(v['boxes']) for v in targets]
    indices = [linear_sum_assignment(c[i]) for i, c in enumerate(C.split(sizes, -1))]
    return [(torch.as_tensor(i, dtype=torch.int64), torch.as_tensor(j, dtype=torch.int64)) for i, j in indices]


def losses(outputs, targets, weight, num_boxes):
    indices = matcher(outputs, targets)
    idx = (torch.cat([torch.full_like(s, i) for i, (s, _) in enumerate(indices)]), torch.cat([s for s, _ in indices]))
    logits = outputs['pred_logits']
    tgt_o = torch.cat([t['labels'][J.to(t['labels'].device)] for t, (_, J) in zip(targets, indices)])
    tc = torch.full(logits.shape[:2], NUM_CLASSES, dtype=torch.int64, device=logits.device)
    tc[idx] = tgt_o
    ce = F.cross_entropy(logits.transpose(1, 2), tc, weight)
    src = outputs['pred_boxes'][idx]
    tgt = torch.cat([t['boxes'][J.to(t['boxes'].device)] for t, (_, J) in zip(targets, indices)])
    l1 = F.l1_loss(src, tgt, reduction='none').sum() / num_boxes
    giou = (1 - torch.diag(generalized_box_iou(xyxy(src), xyxy(tgt)))).sum() / num_boxes
    return ce + 5 * l1 + 2 * giou


def criterion(outputs, targets, weight):
    num_boxes = max(sum(len(t['labels']) for t in targets), 1)
    total = losses(outputs, targets, weight, num_boxes)
    for aux in outputs['aux_outputs']:
        total = total + losses(aux, targets, weight, num_boxes)
    return total


def main(args):
    device = torch.device("cuda")
    torch.manual_seed(42)
    np.random.seed(42)
    random.seed(42)
    model = DETR(NUM_CLASSES, args.num_queries).to(device)
    print('number of params:', sum(p.numel() for p in model.parameters() if p.requires_grad))
    param_dicts = [
        {"params": [p for n, p in model.named_parameters() if "backbone" not in n and p.requires_grad]},
        {"params": [p for n, p in model.named_parameters() if "backbone" in n and p.requires_grad], "lr": args.lr_backbone},
    ]
    optimizer = torch.optim.AdamW(param_dicts, lr=args.lr, weight_decay=args.weight_decay)
    lr_scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 200)
    train = DataLoader(Shapes(args.num_images, args.min_side, 1), args.batch_size, shuffle=True, drop_last=True,
                       collate_fn=collate_fn, num_workers=2)
    val = DataLoader(Shapes(args.num_images // 4, args.min_side, 2), args.batch_size, collate_fn=collate_fn, num_workers=2)
    weight = torch.ones(NUM_CLASSES + 1, device=device)
    weight[-1] = args.eos_coef
    out_dir = tempfile.mkdtemp()
    for epoch in range(args.epochs):
        model.train()
        for it, (samples, mask, targets) in enumerate(train):
            samples, mask = samples.to(device), mask.to(device)
            targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
            loss = criterion(model(samples, mask), targets, weight)
            optimizer.zero_grad()
            loss.backward()
            if args.clip_max_norm > 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_max_norm)
            optimizer.step()
            if it % 5 == 0:
                print(f'epoch {epoch} it {it} size {tuple(samples.shape[-2:])} loss {loss.item():.3f}')
        lr_scheduler.step()
        model.eval()
        tot = 0.0
        with torch.no_grad():
            for samples, mask, targets in val:
                samples, mask = samples.to(device), mask.to(device)
                targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
                tot += criterion(model(samples, mask), targets, weight).item()
        print(f'epoch {epoch} val loss {tot / len(val):.3f}')
        torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'epoch': epoch},
                   os.path.join(out_dir, 'checkpoint.pth'))


if __name__ == '__main__':
    main(parser.parse_args())
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
