"""mT5 headline generation, run_summarization_no_trainer style: accelerate, bf16, gradient accumulation."""
import argparse
import math
import os
import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset
from tqdm.auto import tqdm
from transformers import MT5Config, MT5ForConditionalGeneration, get_scheduler


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--max_source_length", type=int, default=512)
    p.add_argument("--max_target_length", type=int, default=64)
    p.add_argument("--per_device_batch_size", type=int, default=8)
    p.add_argument("--gradient_accumulation_steps", type=int, default=2)
    p.add_argument("--learning_rate", type=float, default=5e-4)
    p.add_argument("--weight_decay", type=float, default=0.01)
    p.add_argument("--num_train_epochs", type=int, default=2)
    p.add_argument("--n_train", type=int, default=256)
    p.add_argument("--n_eval", type=int, default=32)
    p.add_argument("--vocab_size", type=int, default=64000)
    p.add_argument("--layers", type=int, default=8)
    return p.parse_args()


class Articles(Dataset):
    def __init__(self, n, args, seed):
        g = torch.Generator().manual_seed(seed)
        self.rows = []
        for _ in range(n):
            ls = int(torch.randint(args.max_source_length // 3, args.max_source_length + 1, (1,), generator=g))
            lt = int(torch.randint(10, args.max_target_length + 1, (1,), generator=g))
            src = torch.randint(2, args.vocab_size, (ls,), generator=g).tolist()
            tgt = torch.randint(2, args.vocab_size, (lt,), generator=g).tolist()
            self.rows.append((src, tgt[:-1] + [1]))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    ms = max(len(s) for s, _ in rows)
    mt = max(len(t) for _, t in rows)
    ms = (ms + 7) // 8 * 8
    mt = (mt + 7) // 8 * 8
    return {
        "input_ids": torch.tensor([s + [0] * (ms - len(s)) for s, _ in rows]),
        "attention_mask": torch.tensor([[1] * len(s) + [0] * (ms - len(s)) for s, _ in rows]),
        "labels": torch.tensor([t + [-100] * (mt - len(t)) for _, t in rows]),
    }


def main():
    args = parse_args()
    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=args.gradient_accumulation_steps)
    set_seed(13)
    config = MT5Config(vocab_size=args.vocab_size, d_model=512, d_kv=64, d_ff=1024, num_layers=args.layers,
                       num_decoder_layers=args.layers, num_heads=6, decoder_start_token_id=0)
    model = MT5ForConditionalGeneration(config)

    train_dataloader = DataLoader(Articles(args.n_train, args, 1), shuffle=True, collate_fn=collate,
                                  batch_size=args.per_device_batch_size)
    eval_dataloader = DataLoader(Articles(args.n_eval, args, 2), collate_fn=collate,
                                 batch_size=args.per_device_batch_size)

    no_decay = ["bias", "layer_norm.weight"]
    groups = [
        {"params": [p for n, p in model.named_parameters() if not any(nd in n for nd in no_decay)],
         "weight_decay": args.weight_decay},
        {"params": [p for n, p in model.named_parameters() if any(nd in n for nd in no_decay)],
         "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=args.learning_rate)
    steps_per_epoch = math.ceil(len(train_dataloader) / args.gradient_accumulation_steps)
    max_train_steps = steps_per_epoch * args.num_train_epochs
    lr_scheduler = get_scheduler("linear", optimizer=optimizer, num_warmup_steps=2, num_training_steps=max_train_steps)

    model, optimizer, train_dataloader, eval_dataloader, lr_scheduler = accelerator.prepare(
        model, optimizer, train_dataloader, eval_dataloader, lr_scheduler)

    progress_bar = tqdm(range(max_train_steps), disable=not accelerator.is_local_main_process)
    with tempfile.TemporaryDirectory() as output_dir:
        for epoch in range(args.num_train_epochs):
            model.train()
            total_loss = 0.0
            for step, batch in enumerate(train_dataloader):
                with accelerator.accumulate(model):
                    loss = model(**batch).loss
                    total_loss += loss.detach().float()
                    accelerator.backward(loss)
                    if accelerator.sync_gradients:
                        accelerator.clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()
                    lr_scheduler.step()
                    optimizer.zero_grad()
                if accelerator.sync_gradients:
                    progress_bar.update(1)

            model.eval()
            exact = 0
            for batch in eval_dataloader:
                with torch.no_grad():
                    generated = accelerator.unwrap_model(model).generate(
                        batch["input_ids"], attention_mask=batch["attention_mask"],
                        max_length=args.max_target_length, num_beams=2)
                    generated = accelerator.pad_across_processes(generated, dim=1, pad_index=0)
                    labels = accelerator.pad_across_processes(batch["labels"], dim=1, pad_index=-100)
                    generated, labels = accelerator.gather_for_metrics((generated, labels))
                    for gen, lab in zip(generated.cpu().tolist(), labels.cpu().tolist()):
                        exact += [t for t in gen if t > 1] == [t for t in lab if t > 1]
            accelerator.print(f"epoch {epoch} loss {total_loss.item() / len(train_dataloader):.4f} exact {exact}")
            accelerator.save_state(os.path.join(output_dir, f"epoch_{epoch}"))

    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
