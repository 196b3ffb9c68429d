# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning an image classifier with the Trainer in fp16, fused AdamW, evaluation in between."""
import argparse
import os
import tempfile

import torch
from transformers import ConvNextV2Config, ConvNextV2ForImageClassification, Trainer, TrainingArguments

SMALL = os.environ.get("SMALL") == "1"


class Pictures(torch.utils.data.Dataset):
    def __init__(self, n, size):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        image = torch.rand(3, self.size, self.size, generator=g)
        if i % 2:
            image = image.flip(-1)
        return {"pixel_values": (image - 0.5) / 0.25, "labels": i % 37}


class MixupTrainer(Trainer):
    """Label smoothing by hand, as we need the logits."""

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = torch.nn.functional.cross_entropy(outputs.logits, labels, label_smoothing=0.1)
        return (loss, outputs) if return_outputs else loss

    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad():
            labels = inputs["labels"]
            with self.compute_loss_context_manager():
                loss, out = self.compute_loss(model, dict(inputs), return_outputs=True)
        return loss.detach(), out.logits.detach(), labels


def run(batch_size):
    torch.manual_seed(0)
    size = 64 if SMALL else 240
    config = ConvNextV2Config(image_size=size, num_labels=37, depths=[2, 2, 2, 2] if SMALL else [3, 3, 9, 3], hidden_sizes=[16, 32, 64, 128] if SMALL else [88, 176, 352, 704])
    model = ConvNextV2ForImageClassification(config)
    targs = TrainingArguments(
        output_dir=tempfile.mkdtemp(), per_device_train_batch_size=batch_size, per_device_eval_batch_size=batch_size,
        max_steps=5, eval_strategy="steps", eval_steps=3, fp16=torch.cuda.is_available(), optim="adamw_torch_fused" if torch.cuda.is_available() else "adamw_torch",
        save_strategy="no", report_to=[], logging_steps=2, dataloader_num_workers=4 if not SMALL else 0, dataloader_drop_last=True, remove_unused_columns=False,
    )
    trainer = MixupTrainer(model=model, args=targs, train_dataset=Pictures(batch_size * 5, size), eval_dataset=Pictures(batch_size * 2, size))
    trainer.train()
    print(trainer.state.log_history[-1])


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=48)
    run(ap.parse_args().batch_size)
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
