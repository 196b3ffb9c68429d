"""peft example style: OPT + LoRA with accelerate, fp16 mixed precision."""
import argparse
import os
import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from peft import LoraConfig, TaskType, get_peft_model
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm
from transformers import OPTConfig, OPTForCausalLM, get_linear_schedule_with_warmup


class TweetComplaints(Dataset):
    """Short texts padded on the right to max_length, labels only on the answer tokens."""

    def __init__(self, n, max_length, vocab, seed):
        g = torch.Generator().manual_seed(seed)
        self.samples = []
        for _ in range(n):
            text = int(torch.randint(max_length // 4, max_length - 8, (1,), generator=g))
            ids = torch.ones(max_length, dtype=torch.long)
            mask = torch.zeros(max_length, dtype=torch.long)
            labels = torch.full((max_length,), -100)
            ids[: text + 6] = torch.randint(4, vocab, (text + 6,), generator=g)
            mask[: text + 6] = 1
            labels[text: text + 6] = ids[text: text + 6]
            self.samples.append({"input_ids": ids, "attention_mask": mask, "labels": labels})

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch_size", type=int, default=16)
    p.add_argument("--max_length", type=int, default=256)
    p.add_argument("--num_epochs", type=int, default=2)
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--n_train", type=int, default=640)
    p.add_argument("--n_eval", type=int, default=96)
    p.add_argument("--hidden", type=int, default=1024)
    p.add_argument("--layers", type=int, default=24)
    p.add_argument("--mixed_precision", default="fp16")
    args = p.parse_args()

    accelerator = Accelerator(mixed_precision=args.mixed_precision)
    set_seed(7)

    config = OPTConfig(
        vocab_size=50272, hidden_size=args.hidden, num_hidden_layers=args.layers, ffn_dim=4 * args.hidden,
        num_attention_heads=16, word_embed_proj_dim=args.hidden, max_position_embeddings=2048,
    )
    model = OPTForCausalLM(config)
    peft_config = LoraConfig(task_type=TaskType.CAUSAL_LM, r=8, lora_alpha=32, lora_dropout=0.1,
                             target_modules=["q_proj", "v_proj"])
    model = get_peft_model(model, peft_config)
    accelerator.print(model)
    model.print_trainable_parameters()

    train_dl = DataLoader(TweetComplaints(args.n_train, args.max_length, config.vocab_size, 1),
                          shuffle=True, batch_size=args.batch_size, pin_memory=True)
    eval_dl = DataLoader(TweetComplaints(args.n_eval, args.max_length, config.vocab_size, 2),
                         batch_size=args.batch_size, pin_memory=True)

    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    lr_scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=0,
                                                   num_training_steps=len(train_dl) * args.num_epochs)
    model, train_dl, eval_dl, optimizer, lr_scheduler = accelerator.prepare(
        model, train_dl, eval_dl, optimizer, lr_scheduler)

    for epoch in range(args.num_epochs):
        model.train()
        total_loss = 0
        for step, batch in enumerate(tqdm(train_dl)):
            outputs = model(**batch)
            loss = outputs.loss
            total_loss += loss.detach().float()
            accelerator.backward(loss)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()

        model.eval()
        eval_loss = 0
        correct, count = 0, 0
        for step, batch in enumerate(tqdm(eval_dl)):
            with torch.no_grad():
                outputs = model(**batch)
            eval_loss += outputs.loss.detach().float()
            preds = outputs.logits[:, :-1].argmax(-1)
            target = batch["labels"][:, 1:]
            keep = target != -100
            correct += (preds[keep] == target[keep]).sum().item()
            count += keep.sum().item()
        train_epoch_loss = total_loss / len(train_dl)
        eval_epoch_loss = eval_loss / len(eval_dl)
        accelerator.print(f"{epoch=}: {train_epoch_loss=} {eval_epoch_loss=} acc={correct / count:.4f}")

    accelerator.wait_for_everyone()
    with tempfile.TemporaryDirectory() as tmp:
        accelerator.unwrap_model(model).save_pretrained(os.path.join(tmp, "opt-lora"))
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
