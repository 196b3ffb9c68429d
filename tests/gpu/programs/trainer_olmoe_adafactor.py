"""Continue pre-training of an OLMoE-like mixture of experts in pure bf16 with Adafactor (HF Trainer)."""
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import OlmoeConfig, OlmoeForCausalLM, Trainer, TrainerCallback, TrainingArguments, set_seed

VOCAB, HIDDEN, LAYERS, EXPERTS, TOP_K, FF = 50304, 1024, 8, 16, 4, 768
BLOCK, BATCH, N_TRAIN, N_EVAL = 1024, 4, 128, 16


class Blocks(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.ids = (VOCAB ** torch.rand(n, BLOCK, generator=g)).long().clamp(max=VOCAB - 1)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i].clone()}


class MemoryPrinter(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if torch.cuda.is_available():
            print(f"step {state.global_step}: {torch.cuda.memory_allocated() / 2**30:.2f} GiB in use")


def main():
    set_seed(7)
    config = OlmoeConfig(vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=FF, num_hidden_layers=LAYERS, num_attention_heads=16,
                         num_experts=EXPERTS, num_experts_per_tok=TOP_K, max_position_embeddings=BLOCK, output_router_logits=True,
                         router_aux_loss_coef=0.01, use_cache=False)
    torch.set_default_dtype(torch.bfloat16)
    model = OlmoeForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    print(f"{model.num_parameters() / 1e6:.0f}M parameters, dtype {next(model.parameters()).dtype}")
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(), per_device_train_batch_size=BATCH, per_device_eval_batch_size=BATCH, num_train_epochs=1,
        learning_rate=1e-4, lr_scheduler_type="constant_with_warmup", warmup_steps=5, optim="adafactor", max_grad_norm=1.0,
        logging_steps=4, eval_strategy="epoch", save_strategy="no", prediction_loss_only=True, report_to="none", seed=7)
    trainer = Trainer(model=model, args=args, train_dataset=Blocks(N_TRAIN, 0), eval_dataset=Blocks(N_EVAL, 1), callbacks=[MemoryPrinter()])
    result = trainer.train()
    print(result.metrics)
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
