"""ELECTRA pre-training: small generator + base discriminator, replaced token detection. fp16 with Trainer."""
import argparse
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import Dataset
from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining, Trainer, TrainingArguments, set_seed

p = argparse.ArgumentParser()
p.add_argument("--hidden", type=int, default=768)
p.add_argument("--layers", type=int, default=12)
p.add_argument("--gen_hidden", type=int, default=256)
p.add_argument("--vocab", type=int, default=30522)
p.add_argument("--seq_len", type=int, default=256)
p.add_argument("--batch_size", type=int, default=32)
p.add_argument("--n_train", type=int, default=1280)
args = p.parse_args()
set_seed(11)
MASK, CLS, SEP = 103, 101, 102


class Sentences(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(110, args.vocab, (n, args.seq_len), generator=g)
        self.ids[:, 0], self.ids[:, -1] = CLS, SEP

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i]}


def mask_tokens(features, mlm_prob=0.15):
    ids = torch.stack([f["input_ids"] for f in features])
    special = (ids == CLS) | (ids == SEP)
    masked = (torch.rand(ids.shape) < mlm_prob) & ~special
    labels = ids.masked_fill(~masked, -100)
    replaced = masked & (torch.rand(ids.shape) < 0.85)
    return {"input_ids": ids.masked_fill(replaced, MASK), "original_ids": ids, "labels": labels}


class ElectraModel(nn.Module):
    def __init__(self, generator, discriminator, disc_weight=50.0):
        super().__init__()
        self.generator, self.discriminator, self.disc_weight = generator, discriminator, disc_weight
        # tied embeddings
        self.generator.electra.embeddings = self.discriminator.electra.embeddings
        self.generator.generator_lm_head.weight = self.discriminator.electra.embeddings.word_embeddings.weight

    def forward(self, input_ids, original_ids, labels):
        gen_logits = self.generator(input_ids=input_ids).logits
        masked = labels != -100
        mlm_gen_logits = gen_logits[masked]
        gen_loss = F.cross_entropy(mlm_gen_logits.float(), labels[masked])
        with torch.no_grad():
            gumbel = torch.distributions.Gumbel(0.0, 1.0).sample(mlm_gen_logits.shape).to(mlm_gen_logits.device)
            sampled = (mlm_gen_logits.float() + gumbel).argmax(-1)
            fake = original_ids.clone()
            fake[masked] = sampled
            is_replaced = (fake != original_ids).float()
        disc_logits = self.discriminator(input_ids=fake).logits.squeeze(-1)
        disc_loss = F.binary_cross_entropy_with_logits(disc_logits.float(), is_replaced)
        loss = gen_loss + self.disc_weight * disc_loss
        return {"loss": loss, "gen_loss": gen_loss.detach(), "disc_loss": disc_loss.detach()}


gen_cfg = ElectraConfig(vocab_size=args.vocab, embedding_size=args.hidden, hidden_size=args.gen_hidden, num_hidden_layers=args.layers,
                        num_attention_heads=4, intermediate_size=args.gen_hidden * 4)
disc_cfg = ElectraConfig(vocab_size=args.vocab, embedding_size=args.hidden, hidden_size=args.hidden, num_hidden_layers=args.layers,
                         num_attention_heads=12, intermediate_size=args.hidden * 4)
gen = ElectraForMaskedLM(gen_cfg)
gen.generator_predictions.dense = nn.Linear(args.gen_hidden, args.hidden)
gen.generator_lm_head = nn.Linear(args.hidden, args.vocab)
gen.generator_predictions.LayerNorm = nn.LayerNorm(args.hidden)
model = ElectraModel(gen, ElectraForPreTraining(disc_cfg))

training_args = TrainingArguments(
    output_dir=tempfile.mkdtemp(), num_train_epochs=1, per_device_train_batch_size=args.batch_size, per_device_eval_batch_size=args.batch_size,
    learning_rate=2e-4, adam_epsilon=1e-6, weight_decay=0.01, warmup_steps=10, lr_scheduler_type="linear", fp16=True,
    logging_steps=10, eval_strategy="epoch", save_strategy="no", prediction_loss_only=True, remove_unused_columns=False,
    dataloader_num_workers=1, report_to="none")
trainer = Trainer(model=model, args=training_args, train_dataset=Sentences(args.n_train, 0), eval_dataset=Sentences(args.n_train // 10, 1),
                  data_collator=mask_tokens)
trainer.train()
torch.save(model.discriminator.state_dict(), training_args.output_dir + "/discriminator.pt")
if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
