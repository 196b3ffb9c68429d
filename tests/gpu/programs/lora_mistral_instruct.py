"""LoRA fine-tuning of a Mistral-style model on instruction data, plain PyTorch loop."""
import argparse
import math
import tempfile

import torch
from peft import LoraConfig, TaskType, get_peft_model
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm
from transformers import MistralConfig, MistralForCausalLM, get_cosine_schedule_with_warmup, set_seed


class InstructionDataset(Dataset):
    def __init__(self, n, vocab_size, min_len, max_len, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            length = int(torch.randint(min_len, max_len + 1, (1,), generator=g))
            ids = torch.randint(3, vocab_size, (length,), generator=g)
            prompt_len = length // 3
            labels = ids.clone()
            labels[:prompt_len] = -100
            self.items.append((ids, labels))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    max_len = max(len(ids) for ids, _ in batch)
    input_ids = torch.zeros(len(batch), max_len, dtype=torch.long)
    labels = torch.full((len(batch), max_len), -100)
    mask = torch.zeros(len(batch), max_len, dtype=torch.long)
    for i, (ids, lab) in enumerate(batch):
        input_ids[i, : len(ids)] = ids
        labels[i, : len(lab)] = lab
        mask[i, : len(ids)] = 1
    return {"input_ids": input_ids, "attention_mask": mask, "labels": labels}


def evaluate(model, loader, device):
    model.eval()
    total, n = 0.0, 0
    with torch.no_grad():
        for batch in loader:
            batch = {k: v.to(device) for k, v in batch.items()}
            with torch.autocast(device_type=device.type, dtype=torch.bfloat16):
                loss = model(**batch).loss
            total += loss.item()
            n += 1
    model.train()
    return total / n


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch_size", type=int, default=4)
    parser.add_argument("--accum", type=int, default=4)
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--n_train", type=int, default=192)
    parser.add_argument("--n_val", type=int, default=32)
    parser.add_argument("--max_len", type=int, default=512)
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=12)
    args = parser.parse_args()

    set_seed(42)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    config = MistralConfig(
        vocab_size=32000,
        hidden_size=args.hidden,
        intermediate_size=args.hidden * 7 // 2,
        num_hidden_layers=args.layers,
        num_attention_heads=16,
        num_key_value_heads=4,
        max_position_embeddings=2048,
        sliding_window=None,
    )
    model = MistralForCausalLM(config)
    peft_config = LoraConfig(
        task_type=TaskType.CAUSAL_LM,
        r=16,
        lora_alpha=32,
        lora_dropout=0.05,
        target_modules=["q_proj", "k_proj", "v_proj", "o_proj"],
    )
    model = get_peft_model(model, peft_config)
    model.print_trainable_parameters()
    model.to(device)

    train_ds = InstructionDataset(args.n_train, config.vocab_size, args.max_len // 4, args.max_len, seed=1)
    val_ds = InstructionDataset(args.n_val, config.vocab_size, args.max_len // 4, args.max_len, seed=2)
    train_loader = DataLoader(train_ds, batch_size=args.batch_size, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(val_ds, batch_size=args.batch_size, collate_fn=collate)

    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.0)
    total_steps = math.ceil(len(train_loader) / args.accum) * args.epochs
    scheduler = get_cosine_schedule_with_warmup(optimizer, int(0.03 * total_steps), total_steps)

    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        optimizer.zero_grad()
        for step, batch in enumerate(tqdm(train_loader, desc=f"epoch {epoch}")):
            batch = {k: v.to(device) for k, v in batch.items()}
            with torch.autocast(device_type=device.type, dtype=torch.bfloat16):
                outputs = model(**batch)
                loss = outputs.loss / args.accum
            loss.backward()
            running += loss.item() * args.accum
            if (step + 1) % args.accum == 0 or step + 1 == len(train_loader):
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        val_loss = evaluate(model, val_loader, device)
        print(f"epoch {epoch}: train loss {running / len(train_loader):.4f} "
              f"val loss {val_loss:.4f} ppl {math.exp(val_loss):.1f}")

    with tempfile.TemporaryDirectory() as tmp:
        model.save_pretrained(tmp)
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
