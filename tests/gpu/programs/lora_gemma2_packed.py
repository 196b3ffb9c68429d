"""LoRA supervised fine-tuning of a Gemma-2 style model: packed 2k sequences, bf16 weights, gradient checkpointing, Trainer."""
import os
import random
import tempfile

import torch
from peft import LoraConfig, TaskType, get_peft_model
from torch.utils.data import Dataset
from transformers import Gemma2Config, Gemma2ForCausalLM, Trainer, TrainingArguments, default_data_collator, set_seed

MAX_SEQ_LENGTH = 2048
VOCAB = 256000
HIDDEN, LAYERS = 1152, 14
N_TRAIN, N_EVAL = 96, 8
EOS = 1

set_seed(3407)


class PackedChats(Dataset):
    """Random-length turns concatenated and cut in blocks of MAX_SEQ_LENGTH."""

    def __init__(self, n_blocks, seed):
        rng = random.Random(seed)
        stream = []
        while len(stream) < n_blocks * MAX_SEQ_LENGTH:
            start = rng.randrange(10, VOCAB - 3000)
            stream += [2] + [start + (7 * k) % 2500 for k in range(rng.randint(40, 700))] + [EOS]
        ids = torch.tensor(stream[:n_blocks * MAX_SEQ_LENGTH]).view(n_blocks, MAX_SEQ_LENGTH)
        self.ids = ids

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": torch.ones_like(self.ids[i]), "labels": self.ids[i].clone()}


config = Gemma2Config(vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=HIDDEN * 4, num_hidden_layers=LAYERS,
                      num_attention_heads=8, num_key_value_heads=4, head_dim=128, query_pre_attn_scalar=128,
                      sliding_window=1024, max_position_embeddings=8192, attn_implementation="eager")
torch.set_default_dtype(torch.bfloat16)
model = Gemma2ForCausalLM(config)
torch.set_default_dtype(torch.float32)
model.config.use_cache = False

peft_config = LoraConfig(
    r=16,
    lora_alpha=32,
    lora_dropout=0.05,
    bias="none",
    task_type=TaskType.CAUSAL_LM,
    target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
)
model = get_peft_model(model, peft_config)
model.print_trainable_parameters()

args = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    per_device_train_batch_size=1,
    per_device_eval_batch_size=1,
    gradient_accumulation_steps=4,
    gradient_checkpointing=True,
    gradient_checkpointing_kwargs={"use_reentrant": False},
    num_train_epochs=1,
    learning_rate=2e-4,
    lr_scheduler_type="cosine",
    warmup_steps=3,
    max_grad_norm=0.3,
    weight_decay=0.001,
    optim="adamw_torch_fused",
    bf16=True,
    logging_steps=5,
    eval_strategy="epoch",
    prediction_loss_only=True,
    save_strategy="no",
    report_to="none",
)
trainer = Trainer(model=model, args=args, train_dataset=PackedChats(N_TRAIN, 0), eval_dataset=PackedChats(N_EVAL, 1),
                  data_collator=default_data_collator)
trainer.train()
trainer.model.save_pretrained(os.path.join(args.output_dir, "adapter"))
if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
