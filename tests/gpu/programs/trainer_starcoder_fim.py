"""Train a small StarCoder-like model (GPTBigCode, multi-query attention) with fill-in-the-middle."""
import random
import tempfile
from dataclasses import dataclass, field

import numpy as np
import torch
from torch.utils.data import IterableDataset
from transformers import GPTBigCodeConfig, GPTBigCodeForCausalLM, HfArgumentParser, Trainer, TrainingArguments, set_seed

FIM_PREFIX, FIM_MIDDLE, FIM_SUFFIX, EOS = 1, 2, 3, 0


@dataclass
class ScriptArgs:
    n_embd: int = field(default=768)
    n_layer: int = field(default=12)
    seq_length: int = field(default=2048)
    fim_rate: float = field(default=0.5)
    vocab_size: int = field(default=49152)
    batch_size: int = field(default=2)
    max_steps: int = field(default=16)


def permute(sample, rng, fim_rate):
    """FIM transformation in PSM mode on one document."""
    if rng.binomial(1, fim_rate):
        a, b = sorted(rng.integers(low=0, high=len(sample) + 1, size=2))
        prefix, middle, suffix = sample[:a], sample[a:b], sample[b:]
        return np.concatenate([[FIM_PREFIX], prefix, [FIM_SUFFIX], suffix, [FIM_MIDDLE], middle])
    return sample


class ConstantLengthDataset(IterableDataset):
    """Packs documents of different lengths in windows of seq_length tokens."""

    def __init__(self, seq_length, vocab_size, fim_rate, seed, n_windows=None):
        self.seq_length, self.vocab_size, self.fim_rate = seq_length, vocab_size, fim_rate
        self.seed, self.n_windows = seed, n_windows

    def __iter__(self):
        rng = np.random.default_rng(self.seed)
        made = 0
        while self.n_windows is None or made < self.n_windows:
            buffer, windows = [], []
            while sum(len(b) for b in buffer) < self.seq_length * 16:
                doc = rng.integers(4, self.vocab_size, size=int(rng.integers(64, 1500)))
                buffer.append(np.concatenate([permute(doc, rng, self.fim_rate), [EOS]]))
            tokens = np.concatenate(buffer)
            for i in range(0, len(tokens) - self.seq_length, self.seq_length):
                windows.append(tokens[i:i + self.seq_length])
            random.Random(self.seed).shuffle(windows)
            for w in windows:
                if self.n_windows is not None and made >= self.n_windows:
                    return
                made += 1
                ids = torch.as_tensor(w, dtype=torch.long)
                yield {"input_ids": ids, "labels": ids}


def main():
    args, = HfArgumentParser(ScriptArgs).parse_args_into_dataclasses()
    set_seed(0)
    config = GPTBigCodeConfig(vocab_size=args.vocab_size, n_positions=args.seq_length, n_embd=args.n_embd, n_layer=args.n_layer,
                              n_head=12, multi_query=True, use_cache=False, bos_token_id=0, eos_token_id=0)
    model = GPTBigCodeForCausalLM(config)
    print(f"Model size: {model.num_parameters() / 1e6:.1f}M")
    train = ConstantLengthDataset(args.seq_length, args.vocab_size, args.fim_rate, seed=0)
    val = ConstantLengthDataset(args.seq_length, args.vocab_size, args.fim_rate, seed=1, n_windows=12)
    training_args = TrainingArguments(
        output_dir=tempfile.mkdtemp(), max_steps=args.max_steps, eval_strategy="steps", eval_steps=8, save_steps=8, save_total_limit=1,
        per_device_train_batch_size=args.batch_size, per_device_eval_batch_size=args.batch_size, gradient_accumulation_steps=4,
        learning_rate=5e-4, lr_scheduler_type="cosine", warmup_steps=4, weight_decay=0.05, bf16=True, logging_steps=2,
        prediction_loss_only=True, report_to="none")
    trainer = Trainer(model=model, args=training_args, train_dataset=train, eval_dataset=val)
    trainer.train()
    trainer.save_model()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
