"""Prefix tuning of BLOOM on tweet complaints (peft example), accelerate, fp16."""
import argparse
import tempfile

import torch
from accelerate import Accelerator
from peft import PrefixTuningConfig, TaskType, get_peft_model
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm
from transformers import BloomConfig, BloomForCausalLM, get_linear_schedule_with_warmup, set_seed

parser = argparse.ArgumentParser()
parser.add_argument("--hidden", type=int, default=1024)
parser.add_argument("--layers", type=int, default=16)
parser.add_argument("--vocab", type=int, default=100000)
parser.add_argument("--max_length", type=int, default=128)
parser.add_argument("--batch_size", type=int, default=16)
parser.add_argument("--n_train", type=int, default=480)
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()


class Tweets(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            n_tok = int(torch.randint(20, args.max_length - 4, (1,), generator=g))
            text = torch.randint(10, args.vocab, (n_tok,), generator=g)
            label = torch.randint(4, 6, (2,), generator=g)
            ids = torch.full((args.max_length,), 3)
            labels = torch.full((args.max_length,), -100)
            mask = torch.zeros(args.max_length, dtype=torch.long)
            ids[-n_tok - 2:] = torch.cat([text, label])
            labels[-2:] = label
            mask[-n_tok - 2:] = 1
            self.items.append((ids, mask, labels))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        ids, mask, labels = self.items[i]
        return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def main():
    accelerator = Accelerator(mixed_precision="fp16")
    set_seed(42)
    config = BloomConfig(vocab_size=args.vocab, hidden_size=args.hidden, n_layer=args.layers, n_head=16, use_cache=True)
    model = BloomForCausalLM(config)
    peft_config = PrefixTuningConfig(task_type=TaskType.CAUSAL_LM, num_virtual_tokens=30)
    model = get_peft_model(model, peft_config)
    model.print_trainable_parameters()

    train_dl = DataLoader(Tweets(args.n_train, 0), shuffle=True, batch_size=args.batch_size, pin_memory=True)
    eval_dl = DataLoader(Tweets(args.n_train // 6, 1), batch_size=args.batch_size, pin_memory=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-2)
    scheduler = get_linear_schedule_with_warmup(optimizer, 0, len(train_dl) * args.epochs)
    model, train_dl, eval_dl, optimizer, scheduler = accelerator.prepare(model, train_dl, eval_dl, optimizer, scheduler)

    for epoch in range(args.epochs):
        model.train()
        total_loss = 0
        for batch in tqdm(train_dl):
            outputs = model(**batch)
            loss = outputs.loss
            total_loss += loss.detach().float()
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()

        model.eval()
        eval_loss, correct, count = 0, 0, 0
        for batch in tqdm(eval_dl):
            with torch.no_grad():
                outputs = model(**batch)
            eval_loss += outputs.loss.detach().float()
            preds = torch.argmax(outputs.logits, -1)[:, -3:-1]
            correct += (preds == batch["labels"][:, -2:]).sum().item()
            count += preds.numel()
        ppl = torch.exp(eval_loss / len(eval_dl))
        print(f"{epoch=}: train_loss={total_loss / len(train_dl):.4f} eval_ppl={ppl:.2f} acc={correct / count:.3f}")
    accelerator.unwrap_model(model).save_pretrained(tempfile.mkdtemp())


main()
if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
