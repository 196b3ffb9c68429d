"""DETR from scratch: ResNet-50 with frozen batch norm, transformer, Hungarian matching and auxiliary losses."""
import argparse
import math
import tempfile
import time

import torch
import torch.nn.functional as F
from scipy.optimize import linear_sum_assignment
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet50
from torchvision.models._utils import IntermediateLayerGetter
from torchvision.ops import FrozenBatchNorm2d, box_convert, generalized_box_iou

parser = argparse.ArgumentParser("DETR")
parser.add_argument("--lr", default=1e-4, type=float)
parser.add_argument("--lr_backbone", default=1e-5, type=float)
parser.add_argument("--batch_size", default=4, type=int)
parser.add_argument("--epochs", default=2, type=int)
parser.add_argument("--lr_drop", default=1, type=int)
parser.add_argument("--clip_max_norm", default=0.1, type=float)
parser.add_argument("--enc_layers", default=6, type=int)
parser.add_argument("--dec_layers", default=6, type=int)
parser.add_argument("--hidden_dim", default=256, type=int)
parser.add_argument("--num_queries", default=100, type=int)
parser.add_argument("--num_classes", default=91, type=int)
parser.add_argument("--n_train", default=96, type=int)
parser.add_argument("--sizes", default=[416, 448, 480, 512, 544, 576, 608, 640], type=int, nargs="+")
args = parser.parse_args()
torch.manual_seed(42)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Coco(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.hw = torch.tensor(args.sizes)[torch.randint(0, len(args.sizes), (n, 2), generator=g)]
        self.seed = seed

    def __len__(self):
        return len(self.hw)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 10000 + i)
        h, w = self.hw[i].tolist()
        img = torch.rand(3, h // 8, w // 8, generator=g)
        img = F.interpolate(img[None], size=(h, w), mode="nearest")[0]
        k = int(torch.randint(1, 15, (1,), generator=g))
        wh = torch.rand(k, 2, generator=g) * 0.4 + 0.05
        c = wh / 2 + torch.rand(k, 2, generator=g) * (1 - wh)
        return (img - 0.45) / 0.22, {"boxes": torch.cat([c, wh], 1), "labels": torch.randint(1, args.num_classes, (k,), generator=g)}


def collate(batch):
    H, W = max(b[0].shape[1] for b in batch), max(b[0].shape[2] for b in batch)
    x, mask = torch.zeros(len(batch), 3, H, W), torch.ones(len(batch), H, W, dtype=torch.bool)
    for i, (img, _) in enumerate(batch):
        x[i, :, :img.shape[1], :img.shape[2]] = img
        mask[i, :img.shape[1], :img.shape[2]] = False
    return x, mask, [b[1] for b in batch]


def sine_position(mask, feats=128):
    y, x = (~mask).cumsum(1, dtype=torch.float32), (~mask).cumsum(2, dtype=torch.float32)
    y, x = y / (y[:, -1:, :] + 1e-6) * 2 * math.pi, x / (x[:, :, -1:] + 1e-6) * 2 * math.pi
    dim = 10000 ** (2 * (torch.arange(feats, device=mask.device) // 2) / feats)
    px, py = x[..., None] / dim, y[..., None] / dim
    px = torch.stack((px[..., 0::2].sin(), px[..., 1::2].cos()), 4).flatten(3)
    py = torch.stack((py[..., 0::2].sin(), py[..., 1::2].cos()), 4).flatten(3)
    return torch.cat((py, px), 3).permute(0, 3, 1, 2)


class EncoderLayer(nn.Module):
    def __init__(self, d, heads=8, ff=2048, drop=0.1):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d, heads, dropout=drop)
        self.linear1, self.linear2 = nn.Linear(d, ff), nn.Linear(ff, d)
        self.norm1, self.norm2, self.drop = nn.LayerNorm(d), nn.LayerNorm(d), nn.Dropout(drop)

    def forward(self, src, pos, pad):
        q = src + pos
        src = self.norm1(src + self.drop(self.self_attn(q, q, src, key_padding_mask=pad)[0]))
        return self.norm2(src + self.drop(self.linear2(self.drop(F.relu(self.linear1(src))))))


class DecoderLayer(nn.Module):
    def __init__(self, d, heads=8, ff=2048, drop=0.1):
        super().__init__()
        self.self_attn, self.cross = nn.MultiheadAttention(d, heads, dropout=drop), nn.MultiheadAttention(d, heads, dropout=drop)
        self.linear1, self.linear2 = nn.Linear(d, ff), nn.Linear(ff, d)
        self.norm1, self.norm2, self.norm3, self.drop = nn.LayerNorm(d), nn.LayerNorm(d), nn.LayerNorm(d), nn.Dropout(drop)

    def forward(self, tgt, memory, pos, query_pos, pad):
        q = tgt + query_pos
        tgt = self.norm1(tgt + self.drop(self.self_attn(q, q, tgt)[0]))
        tgt = self.norm2(tgt + self.drop(self.cross(tgt + query_pos, memory + pos, memory, key_padding_mask=pad)[0]))
        return self.norm3(tgt + self.drop(self.linear2(self.drop(F.relu(self.linear1(tgt))))))


class DETR(nn.Module):
    def __init__(self):
        super().__init__()
        d = args.hidden_dim
        backbone = resnet50(weights=None, norm_layer=FrozenBatchNorm2d)
        for name, p in backbone.named_parameters():
            if "layer2" not in name and "layer3" not in name and "layer4" not in name:
                p.requires_grad_(False)
        self.backbone = IntermediateLayerGetter(backbone, {"layer4": "0"})
        self.input_proj = nn.Conv2d(2048, d, 1)
        self.encoder = nn.ModuleList([EncoderLayer(d) for _ in range(args.enc_layers)])
        self.decoder = nn.ModuleList([DecoderLayer(d) for _ in range(args.dec_layers)])
        self.norm = nn.LayerNorm(d)
        self.query_embed = nn.Embedding(args.num_queries, d)
        self.class_embed = nn.Linear(d, args.num_classes + 1)
        self.bbox_embed = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d), nn.ReLU(), nn.Linear(d, 4))

    def forward(self, x, mask):
        f = self.backbone(x)["0"]
        m = F.interpolate(mask[None].float(), size=f.shape[-2:]).to(torch.bool)[0]
        pos = sine_position(m, args.hidden_dim // 2).flatten(2).permute(2, 0, 1)
        mem, pad = self.input_proj(f).flatten(2).permute(2, 0, 1), m.flatten(1)
        for layer in self.encoder:
            mem = layer(mem, pos, pad)
        qpos = self.query_embed.weight.unsqueeze(1).repeat(1, x.shape[0], 1)
        tgt, inter = torch.zeros_like(qpos), []
        for layer in self.decoder:
            tgt = layer(tgt, mem, pos, qpos, pad)
            inter.append(self.norm(tgt))
        hs = torch.stack(inter).transpose(1, 2)
        cls, box = self.class_embed(hs), self.bbox_embed(hs).sigmoid()
        out = {"logits": cls[-1], "boxes": box[-1]}
        out["aux"] = [{"logits": a, "boxes": b} for a, b in zip(cls[:-1], box[:-1])]
        return out


@torch.no_grad()
def match(out, targets):
    bs, nq = out["logits"].shape[:2]
    prob, boxes = out["logits"].flatten(0, 1).softmax(-1), out["boxes"].flatten(0, 1)
    ids, tb = torch.cat([t["labels"] for t in targets]), torch.cat([t["boxes"] for t in targets])
    giou = generalized_box_iou(box_convert(boxes, "cxcywh", "xyxy"), box_convert(tb, "cxcywh", "xyxy"))
    C = (5 * torch.cdist(boxes, tb, p=1) - prob[:, ids] - 2 * giou).view(bs, nq, -1).cpu()
    sizes = [len(t["boxes"]) for t in targets]
    return [tuple(torch.as_tensor(v, dtype=torch.int64) for v in linear_sum_assignment(c[i])) for i, c in enumerate(C.split(sizes, -1))]


empty_weight = torch.ones(args.num_classes + 1, device=device)
empty_weight[-1] = 0.1


def set_loss(out, targets, num_boxes):
    idx = match(out, targets)
    b = torch.cat([torch.full_like(s, i) for i, (s, _) in enumerate(idx)])
    s = torch.cat([s for s, _ in idx])
    cls = torch.full(out["logits"].shape[:2], args.num_classes, dtype=torch.int64, device=device)
    cls[b, s] = torch.cat([t["labels"][j] for t, (_, j) in zip(targets, idx)])
    ce = F.cross_entropy(out["logits"].transpose(1, 2), cls, empty_weight)
    src, tgt = out["boxes"][b, s], torch.cat([t["boxes"][j] for t, (_, j) in zip(targets, idx)])
    l1 = F.l1_loss(src, tgt, reduction="none").sum() / num_boxes
    giou = (1 - torch.diag(generalized_box_iou(box_convert(src, "cxcywh", "xyxy"), box_convert(tgt, "cxcywh", "xyxy")))).sum() / num_boxes
    return ce + 5 * l1 + 2 * giou


def criterion(out, targets):
    num_boxes = max(1, sum(len(t["labels"]) for t in targets))
    return sum(set_loss(o, targets, num_boxes) for o in [out] + out["aux"])


model = DETR().to(device)
groups = [{"params": [p for n, p in model.named_parameters() if "backbone" not in n and p.requires_grad]},
          {"params": [p for n, p in model.named_parameters() if "backbone" in n and p.requires_grad], "lr": args.lr_backbone}]
optimizer = torch.optim.AdamW(groups, lr=args.lr, weight_decay=1e-4)
lr_scheduler = torch.optim.lr_scheduler.StepLR(optimizer, args.lr_drop)
train_loader = DataLoader(Coco(args.n_train, 0), batch_size=args.batch_size, shuffle=True, collate_fn=collate, num_workers=2, drop_last=True)
val_loader = DataLoader(Coco(args.n_train // 6, 1), batch_size=args.batch_size, collate_fn=collate, num_workers=2)
out_dir = tempfile.mkdtemp()

for epoch in range(args.epochs):
    model.train()
    t0 = time.time()
    for i, (x, mask, targets) in enumerate(train_loader):
        x, mask = x.to(device), mask.to(device)
        targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
        loss = criterion(model(x, mask), targets)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_max_norm)
        optimizer.step()
        if i % 8 == 0:
            print(f"Epoch [{epoch}] [{i}/{len(train_loader)}] size {tuple(x.shape[-2:])} loss {loss.item():.3f}")
    lr_scheduler.step()
    model.eval()
    val, hits, n = 0.0, 0, 0
    with torch.no_grad():
        for x, mask, targets in val_loader:
            targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
            out = model(x.to(device), mask.to(device))
            val += criterion(out, targets).item()
            scores, labels = out["logits"].softmax(-1)[..., :-1].max(-1)
            n += int((scores > 0.5).sum())
    print(f"Epoch [{epoch}] val loss {val / len(val_loader):.3f} detections {n} time {time.time() - t0:.1f}s")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "lr_scheduler": lr_scheduler.state_dict(), "epoch": epoch}, out_dir + "/checkpoint.pth")

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
