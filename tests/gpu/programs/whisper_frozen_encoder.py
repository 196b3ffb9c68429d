import argparse

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import WhisperConfig, WhisperForConditionalGeneration, get_cosine_schedule_with_warmup


class SpeechDataset(Dataset):
    """Log-mel windows of 30 s (80 x 3000) with a transcript of 20 to 180 tokens."""

    def __init__(self, n, vocab, max_tokens, seed, frames):
        self.n, self.seed, self.frames = n, seed, frames
        g = torch.Generator().manual_seed(seed)
        self.bank = torch.randn(16, 80, frames, generator=g)
        self.labels = [torch.randint(3, vocab, (int(torch.randint(max_tokens // 8, max_tokens, (1,), generator=g)),), generator=g)
                       for _ in range(n)]

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return {"input_features": self.bank[i % 16].roll(i * 37, dims=1), "labels": self.labels[i]}


def collate(items):
    longest = max(len(x["labels"]) for x in items)
    labels = torch.full((len(items), longest), -100)
    for i, x in enumerate(items):
        labels[i, :len(x["labels"])] = x["labels"]
    return {"input_features": torch.stack([x["input_features"] for x in items]), "labels": labels}


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    loss_sum, right, count = 0.0, 0, 0
    for batch in loader:
        batch = {k: v.to(device) for k, v in batch.items()}
        with torch.autocast(device_type=device.type, dtype=torch.bfloat16):
            out = model(**batch)
        keep = batch["labels"] != -100
        right += (out.logits.argmax(-1)[keep] == batch["labels"][keep]).sum().item()
        loss_sum += out.loss.item() * keep.sum().item()
        count += keep.sum().item()
    model.train()
    return loss_sum / count, right / count


def main(args):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(args.seed)
    config = WhisperConfig(vocab_size=args.vocab, d_model=args.dim, encoder_layers=args.layers, decoder_layers=args.layers,
                           encoder_attention_heads=args.dim // 64, decoder_attention_heads=args.dim // 64,
                           encoder_ffn_dim=4 * args.dim, decoder_ffn_dim=4 * args.dim, dropout=0.1, use_cache=False,
                           max_source_positions=args.frames // 2, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                           decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None)
    model = WhisperForConditionalGeneration(config).to(device)
    model.freeze_encoder()
    trainable = [p for p in model.parameters() if p.requires_grad]
    print(f"trainable {sum(p.numel() for p in trainable) / 1e6:.0f}M of {sum(p.numel() for p in model.parameters()) / 1e6:.0f}M")

    train_loader = DataLoader(SpeechDataset(args.train, args.vocab, args.max_tokens, 1, args.frames), batch_size=args.batch_size,
                              shuffle=True, num_workers=3, collate_fn=collate, pin_memory=device.type == "cuda", drop_last=True)
    eval_loader = DataLoader(SpeechDataset(args.val, args.vocab, args.max_tokens, 2, args.frames), batch_size=args.batch_size,
                             collate_fn=collate)
    optimizer = torch.optim.AdamW(trainable, lr=1e-4, fused=device.type == "cuda")
    updates = args.epochs * (len(train_loader) // args.accumulate)
    scheduler = get_cosine_schedule_with_warmup(optimizer, updates // 10, updates)

    step = 0
    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad()
        for i, batch in enumerate(train_loader):
            batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}
            with torch.autocast(device_type=device.type, dtype=torch.bfloat16):
                loss = model(**batch).loss / args.accumulate
            loss.backward()
            if (i + 1) % args.accumulate == 0:
                torch.nn.utils.clip_grad_norm_(trainable, 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
                step += 1
                if step % args.eval_every == 0:
                    val_loss, acc = evaluate(model, eval_loader, device)
                    print(f"step {step} train {loss.item() * args.accumulate:.3f} val {val_loss:.3f} acc {acc:.4f}", flush=True)
        print(f"epoch {epoch} finished")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--dim", type=int, default=768)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--vocab", type=int, default=51865)
    parser.add_argument("--frames", type=int, default=3000)
    parser.add_argument("--max-tokens", type=int, default=180)
    parser.add_argument("--train", type=int, default=1280)
    parser.add_argument("--val", type=int, default=96)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--eval-every", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
