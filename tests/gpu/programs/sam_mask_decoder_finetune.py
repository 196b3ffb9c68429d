# Fine-tune SAM on a custom dataset: vision and prompt encoder frozen, mask decoder trained (notebook style)
import os
import tempfile
from statistics import mean

import numpy as np
import torch
from torch.nn.functional import interpolate, threshold, normalize
from torch.optim import AdamW
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm
from transformers import SamConfig, SamMaskDecoderConfig, SamModel, SamPromptEncoderConfig, SamVisionConfig

torch.manual_seed(0)
NUM_TRAIN, NUM_VAL = 64, 12
BATCH_SIZE = 2
NUM_EPOCHS = 2
VISION = dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, image_size=1024,
              global_attn_indexes=[2, 5, 8, 11], mlp_dim=3072)


def get_bounding_box(ground_truth_map):
    y_indices, x_indices = np.where(ground_truth_map > 0)
    x_min, x_max = np.min(x_indices), np.max(x_indices)
    y_min, y_max = np.min(y_indices), np.max(y_indices)
    H, W = ground_truth_map.shape
    x_min = max(0, x_min - np.random.randint(0, 20))
    x_max = min(W, x_max + np.random.randint(0, 20))
    y_min = max(0, y_min - np.random.randint(0, 20))
    y_max = min(H, y_max + np.random.randint(0, 20))
    return [x_min, y_min, x_max, y_max]


class SAMDataset(Dataset):
    """256 x 256 mitochondria-like patches, resized to the model's input size."""

    def __init__(self, n, image_size, seed):
        self.n, self.image_size, self.seed = n, image_size, seed

    def __len__(self):
        return self.n

    def __getitem__(self, idx):
        rng = np.random.RandomState(self.seed + idx)
        yy, xx = np.mgrid[0:256, 0:256]
        cy, cx, r = rng.randint(70, 186), rng.randint(70, 186), rng.randint(20, 60)
        mask = ((yy - cy) ** 2 + (xx - cx) ** 2 < r * r).astype(np.float32)
        patch = torch.from_numpy(mask * 0.8 + 0.1 * rng.rand(256, 256).astype(np.float32))
        image = interpolate(patch[None, None], size=(self.image_size,) * 2, mode="bilinear")[0].repeat(3, 1, 1)
        box = torch.tensor(get_bounding_box(mask), dtype=torch.float32) * self.image_size / 256
        return {"pixel_values": (image - 0.45) / 0.225, "input_boxes": box[None], "ground_truth_mask": torch.from_numpy(mask)}


def dice_ce(pred, target):
    prob = torch.sigmoid(pred)
    inter = (prob * target).sum((1, 2, 3))
    dice = 1 - (2 * inter + 1e-5) / ((prob ** 2).sum((1, 2, 3)) + (target ** 2).sum((1, 2, 3)) + 1e-5)
    ce = torch.nn.functional.binary_cross_entropy_with_logits(pred, target)
    return dice.mean() + ce


config = SamConfig(vision_config=SamVisionConfig(**VISION).to_dict(),
                   prompt_encoder_config=SamPromptEncoderConfig(image_size=VISION["image_size"],
                                                                image_embedding_size=VISION["image_size"] // 16).to_dict(),
                   mask_decoder_config=SamMaskDecoderConfig().to_dict())
model = SamModel(config)
for name, param in model.named_parameters():
    if name.startswith("vision_encoder") or name.startswith("prompt_encoder"):
        param.requires_grad_(False)
print("trainable", sum(p.numel() for p in model.parameters() if p.requires_grad))

train_dataloader = DataLoader(SAMDataset(NUM_TRAIN, VISION["image_size"], 0), batch_size=BATCH_SIZE, shuffle=True)
val_dataloader = DataLoader(SAMDataset(NUM_VAL, VISION["image_size"], 5000), batch_size=1)
optimizer = AdamW(model.mask_decoder.parameters(), lr=1e-5, weight_decay=0)

device = "cuda"
model.to(device)
model.train()
for epoch in range(NUM_EPOCHS):
    epoch_losses = []
    for batch in tqdm(train_dataloader):
        outputs = model(pixel_values=batch["pixel_values"].to(device),
                        input_boxes=batch["input_boxes"].to(device),
                        multimask_output=False)
        predicted_masks = outputs.pred_masks.squeeze(1)
        ground_truth_masks = batch["ground_truth_mask"].float().to(device)
        predicted_masks = interpolate(predicted_masks, size=ground_truth_masks.shape[-2:], mode="bilinear")
        loss = dice_ce(predicted_masks, ground_truth_masks.unsqueeze(1))

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_losses.append(loss.item())
    print(f'EPOCH: {epoch}')
    print(f'Mean loss: {mean(epoch_losses)}')

    model.eval()
    ious = []
    with torch.no_grad():
        for batch in val_dataloader:
            outputs = model(pixel_values=batch["pixel_values"].to(device), input_boxes=batch["input_boxes"].to(device),
                            multimask_output=False)
            prob = torch.sigmoid(interpolate(outputs.pred_masks.squeeze(1), size=(256, 256), mode="bilinear"))
            seg = (prob.cpu().numpy().squeeze() > 0.5)
            gt = batch["ground_truth_mask"].numpy().squeeze() > 0
            ious.append(float((seg & gt).sum() / max((seg | gt).sum(), 1)))
    print(f'val IoU: {mean(ious):.4f}')
    model.train()

torch.save(model.state_dict(), os.path.join(tempfile.mkdtemp(), "mito_model_checkpoint.pth"))
if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
