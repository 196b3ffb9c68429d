# Prompt tuning of a BLOOM-560m sized model for tweet complaint classification (PEFT docs example, synthetic tweets)
import random
import tempfile

import torch
from peft import PromptTuningConfig, PromptTuningInit, TaskType, get_peft_model
from torch.utils.data import DataLoader
from tqdm import tqdm
from transformers import BloomConfig, BloomForCausalLM, get_linear_schedule_with_warmup, set_seed

device = "cuda"
max_length = 64
lr = 3e-2
num_epochs = 3
batch_size = 8
n_train, n_eval = 160, 40
vocab, hidden, n_layer, n_head = 250880, 1024, 24, 16
pad_token_id = 3
set_seed(42)

COMPLAINT, NO_COMPLAINT = [5460, 12], [654, 5460, 12]


def make_split(n, seed):
    rng = random.Random(seed)
    rows = []
    for _ in range(n):
        label = rng.random() < 0.5
        base = 20000 if label else 90000
        inputs = [101, 102] + [base + rng.randrange(3000) for _ in range(rng.randint(8, 44))] + [103, 104]
        label_ids = (COMPLAINT if label else NO_COMPLAINT) + [pad_token_id]
        rows.append((inputs, label_ids))
    return rows


def preprocess(rows):
    out = []
    for inputs, labels in rows:
        ids = inputs + labels
        lab = [-100] * len(inputs) + labels
        n = max_length - len(ids)
        ids = [pad_token_id] * n + ids
        out.append({"input_ids": torch.tensor(ids[:max_length]),
                    "attention_mask": torch.tensor([0] * n + [1] * (max_length - n)),
                    "labels": torch.tensor(([-100] * n + lab)[:max_length])})
    return out


def collate(rows):
    return {k: torch.stack([r[k] for r in rows]) for k in rows[0]}


train_dataloader = DataLoader(preprocess(make_split(n_train, 0)), shuffle=True, collate_fn=collate, batch_size=batch_size,
                              pin_memory=True)
eval_dataloader = DataLoader(preprocess(make_split(n_eval, 1)), collate_fn=collate, batch_size=batch_size, pin_memory=True)

model = BloomForCausalLM(BloomConfig(vocab_size=vocab, hidden_size=hidden, n_layer=n_layer, n_head=n_head, pad_token_id=pad_token_id))
peft_config = PromptTuningConfig(task_type=TaskType.CAUSAL_LM, prompt_tuning_init=PromptTuningInit.RANDOM, num_virtual_tokens=8)
model = get_peft_model(model, peft_config)
model.print_trainable_parameters()

optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
lr_scheduler = get_linear_schedule_with_warmup(optimizer=optimizer, num_warmup_steps=0,
                                               num_training_steps=(len(train_dataloader) * num_epochs))
model = model.to(device)

for epoch in range(num_epochs):
    model.train()
    total_loss = 0
    for step, batch in enumerate(tqdm(train_dataloader)):
        batch = {k: v.to(device) for k, v in batch.items()}
        outputs = model(**batch)
        loss = outputs.loss
        total_loss += loss.detach().float()
        loss.backward()
        optimizer.step()
        lr_scheduler.step()
        optimizer.zero_grad()

    model.eval()
    eval_loss = 0
    eval_preds = []
    for step, batch in enumerate(tqdm(eval_dataloader)):
        batch = {k: v.to(device) for k, v in batch.items()}
        with torch.no_grad():
            outputs = model(**batch)
        loss = outputs.loss
        eval_loss += loss.detach().float()
        eval_preds.extend(torch.argmax(outputs.logits, -1).detach().cpu().numpy().tolist())

    eval_epoch_loss = eval_loss / len(eval_dataloader)
    eval_ppl = torch.exp(eval_epoch_loss)
    train_epoch_loss = total_loss / len(train_dataloader)
    train_ppl = torch.exp(train_epoch_loss)
    print(f"{epoch=}: {train_ppl=} {train_epoch_loss=} {eval_ppl=} {eval_epoch_loss=}")

model.save_pretrained(tempfile.mkdtemp())
if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
