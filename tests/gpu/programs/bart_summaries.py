import argparse
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from transformers import BartConfig, BartForConditionalGeneration

parser = argparse.ArgumentParser(description="BART-base sized summariser, Adafactor, bf16, beam search every N steps")
parser.add_argument("--batch_size", type=int, default=12)
parser.add_argument("--accum", type=int, default=2)
parser.add_argument("--max_source", type=int, default=768)
parser.add_argument("--max_target", type=int, default=96)
parser.add_argument("--d_model", type=int, default=768)
parser.add_argument("--layers", type=int, default=6)
parser.add_argument("--vocab", type=int, default=50265)
parser.add_argument("--articles", type=int, default=960)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--eval_steps", type=int, default=25)
parser.add_argument("--gen_tokens", type=int, default=48)
args = parser.parse_args()


class Articles(Dataset):
    """The summary is made of every k-th word of the article."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.src, self.tgt = [], []
        for _ in range(n):
            length = int(np.clip(rng.lognormal(math.log(args.max_source * 0.6), 0.4), 16, args.max_source))
            words = rng.zipf(1.3, length).clip(max=args.vocab - 10) + 5
            k = max(2, math.ceil(length / (args.max_target - 2)))
            self.src.append(np.concatenate([[0], words[:args.max_source - 2], [2]]))
            self.tgt.append(np.concatenate([[0], words[::k][:args.max_target - 2], [2]]))

    def __len__(self):
        return len(self.src)

    def __getitem__(self, i):
        return torch.from_numpy(self.src[i]).long(), torch.from_numpy(self.tgt[i]).long()


def collate(batch):
    src = torch.nn.utils.rnn.pad_sequence([b[0] for b in batch], batch_first=True, padding_value=1)
    tgt = torch.nn.utils.rnn.pad_sequence([b[1] for b in batch], batch_first=True, padding_value=-100)
    return src, (src != 1).long(), tgt


def rouge1(hyp, ref):
    common = len(set(hyp) & set(ref))
    return 2 * common / max(1, len(set(hyp)) + len(set(ref)))


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)
train_loader = DataLoader(Articles(args.articles, 1), batch_size=args.batch_size, shuffle=True, collate_fn=collate, num_workers=2)
val_loader = DataLoader(Articles(max(4, args.articles // 40), 2), batch_size=8, collate_fn=collate)

config = BartConfig(vocab_size=args.vocab, d_model=args.d_model, encoder_layers=args.layers, decoder_layers=args.layers,
                    encoder_attention_heads=args.d_model // 64, decoder_attention_heads=args.d_model // 64,
                    encoder_ffn_dim=4 * args.d_model, decoder_ffn_dim=4 * args.d_model, max_position_embeddings=1024,
                    forced_eos_token_id=2)
model = BartForConditionalGeneration(config).to(device)
optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-3, weight_decay=0.0)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 20))


def loss_on(src, mask, tgt):
    logits = model(input_ids=src, attention_mask=mask, labels=tgt.clone()).logits
    return F.cross_entropy(logits.float().flatten(0, 1), tgt.flatten(), ignore_index=-100, label_smoothing=0.1)


@torch.no_grad()
def evaluate():
    model.eval()
    losses, rouge = [], []
    for src, mask, tgt in val_loader:
        src, mask, tgt = src.to(device), mask.to(device), tgt.to(device)
        with torch.autocast(device.type, torch.bfloat16):
            losses.append(loss_on(src, mask, tgt).item())
            out = model.generate(input_ids=src, attention_mask=mask, num_beams=3, max_new_tokens=args.gen_tokens, do_sample=False)
        for h, r in zip(out.tolist(), tgt.tolist()):
            rouge.append(rouge1([t for t in h if t > 2], [t for t in r if t > 2]))
    model.train()
    return np.mean(losses), np.mean(rouge)


update = 0
best = float("inf")
best_state = None
for epoch in range(args.epochs):
    model.train()
    for i, (src, mask, tgt) in enumerate(train_loader):
        src, mask, tgt = src.to(device), mask.to(device), tgt.to(device)
        with torch.autocast(device.type, torch.bfloat16):
            loss = loss_on(src, mask, tgt)
        (loss / args.accum).backward()
        if (i + 1) % args.accum == 0 or i + 1 == len(train_loader):
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad(set_to_none=True)
            update += 1
            if update % args.eval_steps == 0:
                val_loss, r1 = evaluate()
                print(f"update {update} train {loss.item():.3f} val {val_loss:.3f} rouge1 {r1:.3f}", flush=True)
                if val_loss < best:
                    best = val_loss
                    best_state = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}
    print("end of epoch", epoch)

if best_state is not None:
    model.load_state_dict(best_state)
print("final", evaluate())
if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
