"""Fine-tune a StableLM-style causal LM in Lightning: bf16-mixed, accumulate_grad_batches, warmup + cosine."""
import math
import tempfile

import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, Dataset
from transformers import StableLmConfig, StableLmForCausalLM, get_cosine_schedule_with_warmup

SEQ_LEN = 1024
BATCH_SIZE = 4
ACCUM = 4
EPOCHS = 1
N_TRAIN = 256
N_VAL = 32
VOCAB = 32000
HIDDEN = 768
LAYERS = 12


class BlockDataset(Dataset):
    def __init__(self, n_blocks, seed):
        g = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(0, VOCAB, (n_blocks * SEQ_LEN,), generator=g)

    def __len__(self):
        return len(self.tokens) // SEQ_LEN

    def __getitem__(self, i):
        ids = self.tokens[i * SEQ_LEN: (i + 1) * SEQ_LEN]
        return {"input_ids": ids, "labels": ids}


class LMModule(pl.LightningModule):
    def __init__(self, lr=3e-4, weight_decay=0.1, warmup_steps=4):
        super().__init__()
        self.save_hyperparameters()
        config = StableLmConfig(
            vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=HIDDEN * 8 // 3, num_hidden_layers=LAYERS,
            num_attention_heads=12, num_key_value_heads=12, max_position_embeddings=2048, use_cache=False)
        self.model = StableLmForCausalLM(config)

    def forward(self, **batch):
        return self.model(**batch)

    def training_step(self, batch, batch_idx):
        loss = self(**batch).loss
        self.log("train_loss", loss, prog_bar=True)
        self.log("lr", self.lr_schedulers().get_last_lr()[0])
        return loss

    def validation_step(self, batch, batch_idx):
        loss = self(**batch).loss
        self.log("val_loss", loss, prog_bar=True, on_epoch=True, batch_size=batch["input_ids"].size(0))

    def on_validation_epoch_end(self):
        val_loss = self.trainer.callback_metrics.get("val_loss")
        if val_loss is not None:
            self.log("val_ppl", math.exp(min(val_loss.item(), 20)))

    def configure_optimizers(self):
        decay, no_decay = [], []
        for name, p in self.named_parameters():
            (no_decay if p.ndim < 2 else decay).append(p)
        optimizer = torch.optim.AdamW(
            [{"params": decay, "weight_decay": self.hparams.weight_decay},
             {"params": no_decay, "weight_decay": 0.0}], lr=self.hparams.lr, betas=(0.9, 0.95))
        scheduler = get_cosine_schedule_with_warmup(
            optimizer, self.hparams.warmup_steps, int(self.trainer.estimated_stepping_batches))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


def main():
    pl.seed_everything(11)
    train_loader = DataLoader(BlockDataset(N_TRAIN, 0), batch_size=BATCH_SIZE, shuffle=True, num_workers=1)
    val_loader = DataLoader(BlockDataset(N_VAL, 1), batch_size=BATCH_SIZE, num_workers=1)
    with tempfile.TemporaryDirectory() as tmp:
        trainer = pl.Trainer(
            accelerator="gpu", devices=1, precision="bf16-mixed", max_epochs=EPOCHS,
            accumulate_grad_batches=ACCUM, gradient_clip_val=1.0, val_check_interval=0.5,
            log_every_n_steps=4, logger=False, default_root_dir=tmp, enable_checkpointing=True)
        trainer.fit(LMModule(), train_loader, val_loader)
        print({k: float(v) for k, v in trainer.callback_metrics.items()})
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
