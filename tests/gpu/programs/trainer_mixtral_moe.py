"""Pretrain a small Mixtral (8 experts, top-2) from scratch with the Hugging Face Trainer; router auxiliary loss, bf16."""
import argparse
import math
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import MixtralConfig, MixtralForCausalLM, Trainer, TrainingArguments, set_seed

parser = argparse.ArgumentParser()
parser.add_argument("--hidden", type=int, default=512)
parser.add_argument("--inter", type=int, default=1408)
parser.add_argument("--layers", type=int, default=8)
parser.add_argument("--seq", type=int, default=512)
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--n_train", type=int, default=400)
parser.add_argument("--n_eval", type=int, default=48)
parser.add_argument("--vocab", type=int, default=32000)
a = parser.parse_args()
set_seed(11)


class Blocks(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        start = torch.randint(0, a.vocab, (n, 1), generator=g)
        step = torch.randint(1, 50, (n, 1), generator=g)
        ids = (start + step * torch.arange(a.seq)) % a.vocab
        noise = torch.rand(ids.shape, generator=g) < 0.1
        self.ids = torch.where(noise, torch.randint(0, a.vocab, ids.shape, generator=g), ids)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


config = MixtralConfig(vocab_size=a.vocab, hidden_size=a.hidden, intermediate_size=a.inter, num_hidden_layers=a.layers,
                       num_attention_heads=8, num_key_value_heads=2, num_local_experts=8, num_experts_per_tok=2,
                       output_router_logits=True, router_aux_loss_coef=0.02, max_position_embeddings=2048, sliding_window=None)
model = MixtralForCausalLM(config)
print(f"{model.num_parameters() / 1e6:.1f}M parameters")

args = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    per_device_train_batch_size=a.batch,
    per_device_eval_batch_size=a.batch,
    num_train_epochs=1,
    learning_rate=3e-4,
    weight_decay=0.1,
    adam_beta2=0.95,
    warmup_steps=10,
    lr_scheduler_type="cosine",
    bf16=True,
    eval_strategy="steps",
    eval_steps=25,
    logging_steps=5,
    save_strategy="steps",
    save_steps=25,
    save_total_limit=1,
    prediction_loss_only=True,
    report_to="none",
)
trainer = Trainer(model=model, args=args, train_dataset=Blocks(a.n_train, 0), eval_dataset=Blocks(a.n_eval, 1))
trainer.train()
metrics = trainer.evaluate()
print("perplexity", math.exp(min(20, metrics["eval_loss"])))
if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
