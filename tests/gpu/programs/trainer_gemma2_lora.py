"""LoRA instruction tuning of a Gemma-2-like model with gradient checkpointing (Trainer + peft)."""
import argparse
import tempfile

import torch
from peft import LoraConfig, TaskType, get_peft_model
from torch.utils.data import Dataset
from transformers import Gemma2Config, Gemma2ForCausalLM, Trainer, TrainingArguments, set_seed

parser = argparse.ArgumentParser()
parser.add_argument("--hidden", type=int, default=1536)
parser.add_argument("--layers", type=int, default=14)
parser.add_argument("--vocab", type=int, default=64000)
parser.add_argument("--max_len", type=int, default=1024)
parser.add_argument("--n_train", type=int, default=144)
parser.add_argument("--bs", type=int, default=4)
args = parser.parse_args()
set_seed(42)


class Instructions(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.rows = []
        for _ in range(n):
            lp = int(torch.randint(16, args.max_len // 3, (1,), generator=g))
            la = int(torch.randint(16, 2 * args.max_len // 3, (1,), generator=g))
            self.rows.append((torch.randint(5, args.vocab, (lp,), generator=g), torch.randint(5, args.vocab, (la,), generator=g)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        prompt, answer = self.rows[i]
        ids = torch.cat([prompt, answer])
        labels = torch.cat([torch.full_like(prompt, -100), answer])
        return {"input_ids": ids, "labels": labels}


def collate(features):
    longest = max(len(f["input_ids"]) for f in features)
    longest = (longest + 63) // 64 * 64
    batch = {"input_ids": [], "attention_mask": [], "labels": []}
    for f in features:
        pad = longest - len(f["input_ids"])
        batch["input_ids"].append(torch.cat([f["input_ids"], torch.zeros(pad, dtype=torch.long)]))
        batch["attention_mask"].append(torch.cat([torch.ones(len(f["input_ids"]), dtype=torch.long), torch.zeros(pad, dtype=torch.long)]))
        batch["labels"].append(torch.cat([f["labels"], torch.full((pad,), -100)]))
    return {k: torch.stack(v) for k, v in batch.items()}


config = Gemma2Config(vocab_size=args.vocab, hidden_size=args.hidden, intermediate_size=args.hidden * 4, num_hidden_layers=args.layers,
                      num_attention_heads=8, num_key_value_heads=4, head_dim=args.hidden // 8, sliding_window=512,
                      query_pre_attn_scalar=args.hidden // 8, attn_implementation="eager")
model = Gemma2ForCausalLM(config).to(torch.bfloat16)
model.config.use_cache = False
model.enable_input_require_grads()
lora = LoraConfig(task_type=TaskType.CAUSAL_LM, r=16, lora_alpha=32, lora_dropout=0.05,
                  target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"])
model = get_peft_model(model, lora)
model.print_trainable_parameters()

training_args = TrainingArguments(
    output_dir=tempfile.mkdtemp(), num_train_epochs=1, per_device_train_batch_size=args.bs, per_device_eval_batch_size=args.bs,
    gradient_accumulation_steps=2, gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": False},
    learning_rate=2e-4, lr_scheduler_type="cosine", warmup_steps=2, bf16=True, optim="adamw_torch_fused", max_grad_norm=0.3,
    logging_steps=2, eval_strategy="epoch", save_strategy="epoch", prediction_loss_only=True, remove_unused_columns=False, report_to="none")
trainer = Trainer(model=model, args=training_args, train_dataset=Instructions(args.n_train, 0), eval_dataset=Instructions(args.bs * 4, 1),
                  data_collator=collate)
trainer.train()
print(trainer.evaluate())
model.save_pretrained(training_args.output_dir + "/adapter")
if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
