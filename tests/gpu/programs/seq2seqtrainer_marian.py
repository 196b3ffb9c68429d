"""English to French style translation with a MarianMT sized model: Seq2SeqTrainer, Adafactor, label smoothing,
predict_with_generate with beams each epoch."""
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (GenerationConfig, MarianConfig, MarianMTModel, Seq2SeqTrainer, Seq2SeqTrainingArguments, set_seed)

VOCAB, PAD, EOS = 58101, 58100, 0
D_MODEL, LAYERS = 512, 6
BATCH = 48
N_TRAIN, N_VAL = 1440, 96
EPOCHS = 2
MAX_LEN = 96
GEN_LEN, BEAMS = 48, 4

set_seed(1)


class Pairs(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.rows = []
        for _ in range(n):
            k = int(np.clip(rng.lognormal(3.2, 0.6), 4, MAX_LEN))
            src = rng.integers(10, VOCAB - 10, k)
            m = int(np.clip(k * rng.uniform(0.8, 1.3), 4, MAX_LEN))
            tgt = np.resize(src[::-1], m) // 2 + 5
            self.rows.append((np.append(src, EOS), np.append(tgt, EOS)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i][0].tolist(), "labels": self.rows[i][1].tolist()}


def data_collator(features):
    n = max(len(f["input_ids"]) for f in features)
    m = max(len(f["labels"]) for f in features)
    ids = torch.full((len(features), n), PAD)
    labels = torch.full((len(features), m), -100)
    for i, f in enumerate(features):
        ids[i, :len(f["input_ids"])] = torch.tensor(f["input_ids"])
        labels[i, :len(f["labels"])] = torch.tensor(f["labels"])
    batch = {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": labels}
    batch["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(labels)
    return batch


def compute_metrics(eval_preds):
    preds, labels = eval_preds
    preds = np.where(preds < 0, PAD, preds)
    hits, total = 0, 0
    for p, l in zip(preds, labels):
        ref = set(l[l != -100].tolist())
        hyp = set(p[p != PAD].tolist())
        hits += len(ref & hyp)
        total += len(ref)
    return {"unigram_recall": hits / max(total, 1), "gen_len": float(np.mean((preds != PAD).sum(1)))}


config = MarianConfig(vocab_size=VOCAB, decoder_vocab_size=VOCAB, d_model=D_MODEL, encoder_layers=LAYERS, decoder_layers=LAYERS,
                      encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=D_MODEL * 4, decoder_ffn_dim=D_MODEL * 4,
                      max_position_embeddings=512, pad_token_id=PAD, eos_token_id=EOS, decoder_start_token_id=PAD,
                      forced_eos_token_id=EOS, scale_embedding=True, activation_function="swish", static_position_embeddings=True)
model = MarianMTModel(config)
model.generation_config = GenerationConfig(pad_token_id=PAD, eos_token_id=EOS, decoder_start_token_id=PAD, bad_words_ids=[[PAD]],
                                           num_beams=BEAMS, max_length=GEN_LEN)

args = Seq2SeqTrainingArguments(
    output_dir=tempfile.mkdtemp(),
    eval_strategy="epoch",
    save_strategy="epoch",
    save_total_limit=1,
    learning_rate=2e-4,
    optim="adafactor",
    label_smoothing_factor=0.1,
    per_device_train_batch_size=BATCH,
    per_device_eval_batch_size=BATCH,
    weight_decay=0.01,
    num_train_epochs=EPOCHS,
    predict_with_generate=True,
    generation_max_length=GEN_LEN,
    generation_num_beams=BEAMS,
    fp16=True,
    logging_steps=10,
    report_to="none",
)
trainer = Seq2SeqTrainer(model, args, train_dataset=Pairs(N_TRAIN, 0), eval_dataset=Pairs(N_VAL, 1), data_collator=data_collator,
                         compute_metrics=compute_metrics)
trainer.train()
if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
