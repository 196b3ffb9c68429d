import tempfile

import numpy as np
import torch
from transformers import Trainer, TrainingArguments, VideoMAEConfig, VideoMAEForVideoClassification

NUM_CLASSES = 51
FRAMES = 16
SIZE = 224
BATCH_SIZE = 8
TRAIN_CLIPS = 320
VAL_CLIPS = 48


class Clips(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        self.n, self.seed = n, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed + i)
        video = torch.randint(0, 256, (FRAMES, 3, SIZE, SIZE), dtype=torch.uint8, generator=g)
        video = (video.float() / 255 - 0.45) / 0.225
        return {"pixel_values": video, "labels": i % NUM_CLASSES}


def collate(examples):
    return {"pixel_values": torch.stack([e["pixel_values"] for e in examples]),
            "labels": torch.tensor([e["labels"] for e in examples])}


def accuracy(eval_pred):
    return {"accuracy": float((np.argmax(eval_pred.predictions, 1) == eval_pred.label_ids).mean())}


config = VideoMAEConfig(
    image_size=SIZE,
    num_frames=FRAMES,
    hidden_size=384,
    num_hidden_layers=12,
    num_attention_heads=6,
    intermediate_size=1536,
    num_labels=NUM_CLASSES,
    use_mean_pooling=True,
)
model = VideoMAEForVideoClassification(config)
print(f"{model.num_parameters() / 1e6:.1f}M parameters")

with tempfile.TemporaryDirectory() as tmp:
    args = TrainingArguments(
        tmp,
        remove_unused_columns=False,
        eval_strategy="epoch",
        save_strategy="no",
        learning_rate=5e-5,
        per_device_train_batch_size=BATCH_SIZE,
        per_device_eval_batch_size=BATCH_SIZE,
        num_train_epochs=2,
        fp16=True,
        max_grad_norm=1.0,
        optim="adamw_torch",
        logging_steps=10,
        dataloader_num_workers=4,
        report_to="none",
    )
    trainer = Trainer(model, args, train_dataset=Clips(TRAIN_CLIPS, 0), eval_dataset=Clips(VAL_CLIPS, 10_000),
                      data_collator=collate, compute_metrics=accuracy)
    trainer.train()
    metrics = trainer.evaluate()
    print(metrics)

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
