"""Sentence embedding model trained with cached multiple negatives ranking inside Matryoshka loss (sentence-transformers, manual loop)."""
import argparse
import os
import random
import tempfile
import time

import torch
from sentence_transformers import InputExample, SentenceTransformer, losses, models, util
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from torch.utils.data import DataLoader
from transformers import MPNetConfig, MPNetModel, PreTrainedTokenizerFast, get_cosine_schedule_with_warmup

ap = argparse.ArgumentParser()
ap.add_argument("--hidden", type=int, default=768)
ap.add_argument("--layers", type=int, default=8)
ap.add_argument("--max_seq_length", type=int, default=128)
ap.add_argument("--batch_size", type=int, default=256)
ap.add_argument("--mini_batch_size", type=int, default=64)
ap.add_argument("--n_pairs", type=int, default=4096)
ap.add_argument("--epochs", type=int, default=1)
ap.add_argument("--dims", type=int, nargs="+", default=[768, 384, 192, 96])
args = ap.parse_args()
random.seed(12)
torch.manual_seed(12)
device = "cuda" if torch.cuda.is_available() else "cpu"

# a small word level vocabulary and a randomly initialised encoder
words = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(2, 9))) for _ in range(20000)]
vocab = {w: i for i, w in enumerate(["<pad>", "<s>", "</s>", "<unk>", "<mask>"] + sorted(set(words)))}
tok = Tokenizer(WordLevel(vocab, unk_token="<unk>"))
tok.pre_tokenizer = Whitespace()
tok.post_processor = TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tok, pad_token="<pad>", bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>",
                                    unk_token="<unk>", mask_token="<mask>", model_max_length=512, model_input_names=["input_ids", "attention_mask"])
base = tempfile.mkdtemp()
tokenizer.save_pretrained(base)
MPNetModel(MPNetConfig(vocab_size=len(vocab), hidden_size=args.hidden, num_hidden_layers=args.layers, num_attention_heads=12,
                       intermediate_size=args.hidden * 4, pad_token_id=0, bos_token_id=1, eos_token_id=2)).save_pretrained(base)

word_embedding = models.Transformer(base, max_seq_length=args.max_seq_length)
pooling = models.Pooling(args.hidden, pooling_mode="mean")
model = SentenceTransformer(modules=[word_embedding, pooling, models.Normalize()], device=device)


def sentence(n):
    return " ".join(random.choices(words, k=n))


def pair():
    passage = sentence(random.randint(40, 140)).split()
    start = random.randrange(len(passage) - 12)
    return " ".join(passage[start:start + random.randint(6, 12)]), " ".join(passage)


train_examples = [InputExample(texts=list(pair())) for _ in range(args.n_pairs)]
eval_pairs = [pair() for _ in range(args.n_pairs // 8)]


def collate(batch):
    columns = list(zip(*[e.texts for e in batch]))
    return [model.tokenize(list(c)) for c in columns]


loader = DataLoader(train_examples, batch_size=args.batch_size, shuffle=True, drop_last=True, collate_fn=collate)
inner = losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=args.mini_batch_size)
loss_fn = losses.MatryoshkaLoss(model, inner, matryoshka_dims=args.dims)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0.01)
total = len(loader) * args.epochs
scheduler = get_cosine_schedule_with_warmup(optimizer, total // 10, total)
out = tempfile.mkdtemp()


def evaluate():
    q = model.encode([p[0] for p in eval_pairs], batch_size=64, convert_to_tensor=True, show_progress_bar=False)
    d = model.encode([p[1] for p in eval_pairs], batch_size=64, convert_to_tensor=True, show_progress_bar=False)
    rank = (util.cos_sim(q, d) >= util.cos_sim(q, d).diagonal()[:, None]).sum(1)
    return (rank <= 10).float().mean().item()


print("recall@10 before", evaluate())
for epoch in range(args.epochs):
    model.train()
    t0 = time.time()
    for step, features in enumerate(loader):
        features = [util.batch_to_device(f, model.device) for f in features]
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = loss_fn(features, None)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % 4 == 0:
            print(f"epoch {epoch} step {step}/{len(loader)} loss {loss.item():.4f} {time.time() - t0:.1f}s")
    print(f"epoch {epoch} recall@10 {evaluate():.4f}")
    model.save(os.path.join(out, f"epoch-{epoch}"))

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
