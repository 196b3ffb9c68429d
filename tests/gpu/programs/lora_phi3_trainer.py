"""LoRA SFT of a small Phi-3 model with the Hugging Face Trainer and gradient checkpointing (bf16)."""
import tempfile

import torch
from peft import LoraConfig, get_peft_model
from torch.utils.data import Dataset
from transformers import Phi3Config, Phi3ForCausalLM, Trainer, TrainingArguments, set_seed

SEQ_LEN = 1024
VOCAB = 32064
N_TRAIN = 256
N_EVAL = 32
BATCH = 8
HIDDEN = 1536
LAYERS = 16


class ChatDataset(Dataset):
    """Token blocks of fixed length, as after packing."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(5, VOCAB, (n, SEQ_LEN), generator=g)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        ids = self.ids[i]
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.clone()}


def main():
    set_seed(0)
    config = Phi3Config(
        vocab_size=VOCAB,
        hidden_size=HIDDEN,
        intermediate_size=HIDDEN * 8 // 3,
        num_hidden_layers=LAYERS,
        num_attention_heads=16,
        num_key_value_heads=16,
        max_position_embeddings=4096,
        original_max_position_embeddings=4096,
        pad_token_id=0,
        use_cache=False,
    )
    model = Phi3ForCausalLM(config).to(torch.bfloat16)
    lora = LoraConfig(
        r=32,
        lora_alpha=64,
        lora_dropout=0.05,
        bias="none",
        task_type="CAUSAL_LM",
        target_modules=["qkv_proj", "o_proj", "gate_up_proj", "down_proj"],
    )
    model = get_peft_model(model, lora)
    model.enable_input_require_grads()
    model.print_trainable_parameters()

    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out,
            num_train_epochs=1,
            per_device_train_batch_size=BATCH,
            per_device_eval_batch_size=BATCH,
            gradient_accumulation_steps=2,
            gradient_checkpointing=True,
            gradient_checkpointing_kwargs={"use_reentrant": False},
            learning_rate=1e-4,
            lr_scheduler_type="cosine",
            warmup_steps=2,
            bf16=True,
            logging_steps=4,
            eval_strategy="epoch",
            save_strategy="epoch",
            prediction_loss_only=True,
            report_to="none",
            seed=0,
        )
        trainer = Trainer(
            model=model,
            args=args,
            train_dataset=ChatDataset(N_TRAIN, 1),
            eval_dataset=ChatDataset(N_EVAL, 2),
        )
        trainer.train()
        print(trainer.evaluate())
        model.save_pretrained(out)

    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
