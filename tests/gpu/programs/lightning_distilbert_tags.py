# Question tagging (multi-label) with DistilBERT in Lightning, bf16, accumulation.
from argparse import ArgumentParser

import pytorch_lightning as pl
import torch
import torchmetrics
from torch.utils.data import DataLoader, Dataset
from transformers import DistilBertConfig, DistilBertModel, get_linear_schedule_with_warmup


class Questions(Dataset):
    def __init__(self, n, max_len, n_tags, seed):
        g = torch.Generator().manual_seed(seed)
        self.lens = torch.randint(max_len // 6, max_len + 1, (n,), generator=g)
        self.ids = torch.randint(1000, 30000, (n, max_len), generator=g)
        self.tags = (torch.rand(n, n_tags, generator=g) < 0.02).float()
        self.max_len = max_len

    def __len__(self):
        return len(self.lens)

    def __getitem__(self, i):
        mask = (torch.arange(self.max_len) < self.lens[i]).long()
        return dict(input_ids=self.ids[i] * mask, attention_mask=mask, tags=self.tags[i])


class TagClassifier(pl.LightningModule):
    def __init__(self, n_tags, lr, warmup, total, dim, layers):
        super().__init__()
        cfg = DistilBertConfig(dim=dim, hidden_dim=4 * dim, n_layers=layers)
        self.bert = DistilBertModel(cfg)
        self.classifier = torch.nn.Linear(dim, n_tags)
        self.lr, self.warmup, self.total = lr, warmup, total
        self.criterion = torch.nn.BCEWithLogitsLoss()
        self.auroc = torchmetrics.classification.MultilabelF1Score(num_labels=n_tags)

    def forward(self, input_ids, attention_mask):
        h = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return self.classifier(h[:, 0])

    def training_step(self, batch, _):
        logits = self(batch["input_ids"], batch["attention_mask"])
        loss = self.criterion(logits, batch["tags"])
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, _):
        logits = self(batch["input_ids"], batch["attention_mask"])
        self.log("val_loss", self.criterion(logits, batch["tags"]), prog_bar=True)
        self.auroc.update(logits.float().sigmoid(), batch["tags"].int())
        self.log("val_f1", self.auroc)

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.lr)
        sch = get_linear_schedule_with_warmup(opt, self.warmup, self.total)
        return dict(optimizer=opt, lr_scheduler=dict(scheduler=sch, interval="step"))


def cli_main():
    p = ArgumentParser()
    p.add_argument("--batch-size", type=int, default=24)
    p.add_argument("--max-len", type=int, default=512)
    p.add_argument("--questions", type=int, default=2880)
    p.add_argument("--tags", type=int, default=100)
    p.add_argument("--dim", type=int, default=768)
    p.add_argument("--layers", type=int, default=6)
    p.add_argument("--epochs", type=int, default=2)
    a = p.parse_args()
    pl.seed_everything(1)
    train = DataLoader(Questions(a.questions, a.max_len, a.tags, 0), a.batch_size, shuffle=True, num_workers=2)
    val = DataLoader(Questions(a.questions // 8, a.max_len, a.tags, 1), a.batch_size * 2, num_workers=2)
    total = a.epochs * len(train) // 4
    model = TagClassifier(a.tags, 5e-5, total // 10, total, a.dim, a.layers)
    trainer = pl.Trainer(
        max_epochs=a.epochs,
        accelerator="auto",
        devices=1,
        precision="bf16-mixed",
        accumulate_grad_batches=4,
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
    )
    trainer.fit(model, train, val)
    trainer.validate(model, val)
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    cli_main()
