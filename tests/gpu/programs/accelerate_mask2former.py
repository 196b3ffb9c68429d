"""Instance segmentation with Mask2Former (Swin-T backbone) following the no_trainer example with accelerate."""
import argparse
import tempfile

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset
from tqdm.auto import tqdm
from transformers import Mask2FormerConfig, Mask2FormerForUniversalSegmentation, SwinConfig, get_scheduler


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--image_height", type=int, default=384)
    p.add_argument("--image_width", type=int, default=384)
    p.add_argument("--num_labels", type=int, default=20)
    p.add_argument("--embed_dim", type=int, default=96)
    p.add_argument("--hidden_dim", type=int, default=256)
    p.add_argument("--decoder_layers", type=int, default=10)
    p.add_argument("--points", type=int, default=12544)
    p.add_argument("--queries", type=int, default=100)
    p.add_argument("--per_device_train_batch_size", type=int, default=3)
    p.add_argument("--n_train", type=int, default=48)
    p.add_argument("--num_train_epochs", type=int, default=2)
    p.add_argument("--learning_rate", type=float, default=1e-5)
    return p.parse_args()


class Instances(Dataset):
    def __init__(self, n, h, w, labels, seed):
        self.n, self.h, self.w, self.labels, self.seed = n, h, w, labels, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 1000 + i)
        img = F.interpolate(torch.rand(1, 3, 24, 24, generator=g), size=(self.h, self.w), mode="bilinear")[0]
        k = int(torch.randint(2, 9, (1,), generator=g))
        masks = torch.zeros(k, self.h, self.w)
        for j in range(k):
            y, x = int(torch.randint(0, self.h - 32, (1,), generator=g)), int(torch.randint(0, self.w - 32, (1,), generator=g))
            hh, ww = torch.randint(24, self.h // 2, (2,), generator=g).tolist()
            masks[j, y:y + hh, x:x + ww] = 1
        return {"pixel_values": (img - 0.45) / 0.22, "pixel_mask": torch.ones(self.h, self.w, dtype=torch.long), "mask_labels": masks,
                "class_labels": torch.randint(0, self.labels, (k,), generator=g)}


def collate_fn(examples):
    return {"pixel_values": torch.stack([e["pixel_values"] for e in examples]), "pixel_mask": torch.stack([e["pixel_mask"] for e in examples]),
            "class_labels": [e["class_labels"] for e in examples], "mask_labels": [e["mask_labels"] for e in examples]}


def main():
    args = parse_args()
    accelerator = Accelerator(gradient_accumulation_steps=2)
    set_seed(1)
    backbone = SwinConfig(image_size=args.image_height, embed_dim=args.embed_dim, depths=[2, 2, 6, 2], num_heads=[3, 6, 12, 24], window_size=7,
                          drop_path_rate=0.2, out_features=["stage1", "stage2", "stage3", "stage4"])
    config = Mask2FormerConfig(backbone_config=backbone, feature_size=args.hidden_dim, mask_feature_size=args.hidden_dim, hidden_dim=args.hidden_dim,
                               num_queries=args.queries, decoder_layers=args.decoder_layers, train_num_points=args.points, num_labels=args.num_labels)
    model = Mask2FormerForUniversalSegmentation(config)
    train = DataLoader(Instances(args.n_train, args.image_height, args.image_width, args.num_labels, 0), shuffle=True,
                       batch_size=args.per_device_train_batch_size, collate_fn=collate_fn, num_workers=1)
    val = DataLoader(Instances(max(args.n_train // 6, 1), args.image_height, args.image_width, args.num_labels, 1),
                     batch_size=args.per_device_train_batch_size, collate_fn=collate_fn)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, betas=(0.9, 0.999), eps=1e-8)
    steps = args.num_train_epochs * len(train) // 2
    scheduler = get_scheduler("linear", optimizer=optimizer, num_warmup_steps=0, num_training_steps=steps)
    model, optimizer, train, val, scheduler = accelerator.prepare(model, optimizer, train, val, scheduler)
    bar = tqdm(range(steps))
    out = tempfile.mkdtemp()
    for epoch in range(args.num_train_epochs):
        model.train()
        total = 0.0
        for batch in train:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                total += loss.detach().float()
                accelerator.backward(loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                bar.update(1)
        model.eval()
        inter, union, vloss = 0.0, 0.0, 0.0
        for batch in val:
            with torch.no_grad():
                outputs = model(**batch)
            vloss += outputs.loss.item()
            scores = outputs.class_queries_logits.softmax(-1)[..., :-1].max(-1).values
            masks = F.interpolate(outputs.masks_queries_logits, size=(args.image_height, args.image_width), mode="bilinear", align_corners=False)
            pred = (masks.sigmoid() * scores[..., None, None]).amax(1) > 0.25
            gt = torch.stack([m.amax(0) for m in batch["mask_labels"]]).bool()
            inter += (pred & gt).sum().item()
            union += (pred | gt).sum().item()
        print(f"epoch {epoch}: train loss {total.item() / len(train):.3f} val loss {vloss / len(val):.3f} fg IoU {inter / max(union, 1):.3f}")
        accelerator.save_state(out)
    accelerator.end_training()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
