# RAFT (small) optical flow, FlyingChairs-like schedule, mixed precision.
import argparse

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.models.optical_flow import raft_small


class WarpedPairs(Dataset):
    def __init__(self, length, size):
        self.length = length
        self.size = size

    def __len__(self):
        return self.length

    def __getitem__(self, idx):
        g = torch.Generator().manual_seed(idx)
        h, w = self.size
        im1 = torch.rand(3, h, w, generator=g) * 2 - 1
        coarse = torch.randn(1, 2, h // 64, w // 64, generator=g) * 6
        flow = F.interpolate(coarse, size=(h, w), mode="bilinear", align_corners=True)
        yy, xx = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing="ij")
        grid = torch.stack([xx, yy], -1)[None]
        norm = torch.tensor([2.0 / w, 2.0 / h])
        im2 = F.grid_sample(im1[None], grid + flow.permute(0, 2, 3, 1) * norm, align_corners=True)[0]
        valid = (flow[0].abs() < 1000).all(0).float()
        return im1, im2, flow[0], valid


def sequence_loss(flow_preds, flow_gt, valid, gamma=0.8, max_flow=400):
    mag = torch.sum(flow_gt ** 2, dim=1).sqrt()
    valid = (valid >= 0.5) & (mag < max_flow)
    n = len(flow_preds)
    loss = 0.0
    for i, pred in enumerate(flow_preds):
        weight = gamma ** (n - i - 1)
        loss = loss + weight * (valid[:, None] * (pred - flow_gt).abs()).mean()
    epe = torch.sum((flow_preds[-1].detach() - flow_gt) ** 2, dim=1).sqrt()
    epe = epe.view(-1)[valid.view(-1)]
    return loss, epe.mean().item()


@torch.no_grad()
def validate(model, loader, device, iters=24):
    model.eval()
    total = 0.0
    for im1, im2, flow, _ in loader:
        pred = model(im1.to(device), im2.to(device), num_flow_updates=iters)[-1]
        total += (pred.float().cpu() - flow).pow(2).sum(1).sqrt().mean().item()
    return total / len(loader)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=8)
    p.add_argument("--image-size", type=int, nargs=2, default=[368, 496])
    p.add_argument("--val-size", type=int, nargs=2, default=[440, 1024])
    p.add_argument("--iters", type=int, default=12)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--pairs", type=int, default=240)
    p.add_argument("--clip", type=float, default=1.0)
    args = p.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = raft_small(weights=None).to(device)
    print("Parameter Count: %d" % sum(q.numel() for q in model.parameters() if q.requires_grad))

    train_set = WarpedPairs(args.pairs, args.image_size)
    val_set = WarpedPairs(max(2, args.pairs // 20), args.val_size)
    train_loader = DataLoader(train_set, args.batch_size, shuffle=True, num_workers=4, drop_last=True, pin_memory=True)
    val_loader = DataLoader(val_set, 1, num_workers=2)

    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-4, weight_decay=1e-4, eps=1e-8)
    steps = args.epochs * len(train_loader) + 10
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-4, steps, pct_start=0.05,
                                                    cycle_momentum=False, anneal_strategy="linear")
    scaler = torch.amp.GradScaler("cuda")

    for epoch in range(args.epochs):
        model.train()
        for step, batch in enumerate(train_loader):
            optimizer.zero_grad()
            im1, im2, flow, valid = [x.to(device, non_blocking=True) for x in batch]
            with torch.amp.autocast("cuda", dtype=torch.float16):
                preds = model(im1, im2, num_flow_updates=args.iters)
                loss, epe = sequence_loss(preds, flow, valid)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            scaler.step(optimizer)
            scheduler.step()
            scaler.update()
            if step % 10 == 0:
                print(f"[{epoch}:{step}] loss {loss.item():.3f} epe {epe:.3f}")
        print("Validation EPE: %.3f" % validate(model, val_loader, device))

    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
