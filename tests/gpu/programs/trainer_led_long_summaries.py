"""Long document summarisation with LED (4k input, local + global attention), Seq2SeqTrainer."""
import argparse
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import LEDConfig, LEDForConditionalGeneration, Seq2SeqTrainer, Seq2SeqTrainingArguments, set_seed

parser = argparse.ArgumentParser()
parser.add_argument("--d_model", type=int, default=512)
parser.add_argument("--layers", type=int, default=5)
parser.add_argument("--vocab", type=int, default=32000)
parser.add_argument("--max_input", type=int, default=4096)
parser.add_argument("--max_output", type=int, default=256)
parser.add_argument("--window", type=int, default=512)
parser.add_argument("--batch_size", type=int, default=2)
parser.add_argument("--n_train", type=int, default=64)
args = parser.parse_args()
set_seed(2024)


class Papers(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.docs, self.sums = [], []
        for _ in range(n):
            ld = int(torch.randint(args.max_input // 2, args.max_input + 1, (1,), generator=g))
            ls = int(torch.randint(args.max_output // 2, args.max_output + 1, (1,), generator=g))
            self.docs.append(torch.randint(5, args.vocab, (ld,), generator=g))
            self.sums.append(torch.randint(5, args.vocab, (ls,), generator=g))

    def __len__(self):
        return len(self.docs)

    def __getitem__(self, i):
        ids = torch.ones(args.max_input, dtype=torch.long)
        mask = torch.zeros(args.max_input, dtype=torch.long)
        ids[:len(self.docs[i])], mask[:len(self.docs[i])] = self.docs[i], 1
        glob = torch.zeros(args.max_input, dtype=torch.long)
        glob[0] = 1
        labels = torch.full((args.max_output,), -100)
        labels[:len(self.sums[i])] = self.sums[i]
        return {"input_ids": ids, "attention_mask": mask, "global_attention_mask": glob, "labels": labels}


def compute_metrics(pred):
    labels = np.where(pred.label_ids == -100, 1, pred.label_ids)
    preds = np.where(pred.predictions == -100, 1, pred.predictions)
    overlap = [len(set(a[a > 4]) & set(b[b > 4])) / max(1, len(set(b[b > 4]))) for a, b in zip(preds, labels)]
    return {"rouge1_recall": float(np.mean(overlap)), "gen_len": float(np.mean([(a != 1).sum() for a in preds]))}


config = LEDConfig(vocab_size=args.vocab, d_model=args.d_model, encoder_layers=args.layers, decoder_layers=args.layers,
                   encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=args.d_model * 4, decoder_ffn_dim=args.d_model * 4,
                   max_encoder_position_embeddings=args.max_input, max_decoder_position_embeddings=1024,
                   attention_window=[args.window] * args.layers, use_cache=False)
led = LEDForConditionalGeneration(config)
led.generation_config.num_beams = 2
led.generation_config.max_length = min(64, args.max_output)
led.generation_config.early_stopping = True

training_args = Seq2SeqTrainingArguments(
    output_dir=tempfile.mkdtemp(), predict_with_generate=True, eval_strategy="steps", eval_steps=8, max_steps=16,
    per_device_train_batch_size=args.batch_size, per_device_eval_batch_size=args.batch_size, gradient_accumulation_steps=2,
    gradient_checkpointing=True, bf16=True, logging_steps=4, save_steps=8, save_total_limit=1, learning_rate=5e-5, report_to="none")
trainer = Seq2SeqTrainer(model=led, args=training_args, compute_metrics=compute_metrics,
                         train_dataset=Papers(args.n_train, 0), eval_dataset=Papers(4, 1))
trainer.train()
if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
