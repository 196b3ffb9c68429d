"""Text line recognition: ViT encoder + TrOCR decoder through the Hugging Face Trainer, bf16."""
import argparse
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, TrOCRConfig, TrOCRForCausalLM, ViTConfig, ViTModel, VisionEncoderDecoderModel, set_seed

PAD, BOS, EOS, FIRST = 1, 0, 2, 4


class Lines(Dataset):
    """Each character is a fixed random glyph of 64 x 16 pixels."""

    def __init__(self, n, width, charset, seed):
        rng = np.random.default_rng(seed)
        glyphs = np.random.default_rng(0).random((charset, 8, 4)) > 0.5
        self.glyphs = np.kron(glyphs, np.ones((8, 4))).astype(np.float32)
        self.width = width
        self.texts = [rng.integers(0, charset, rng.integers(width // 64, width // 16 + 1)) for _ in range(n)]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        text = self.texts[i]
        line = np.concatenate(list(self.glyphs[text]), axis=1)
        canvas = np.zeros((64, self.width), np.float32)
        canvas[:, :line.shape[1]] = line
        image = torch.from_numpy(canvas) + 0.2 * torch.randn(64, self.width)
        return {"pixel_values": image[None].expand(3, -1, -1), "labels": torch.tensor([BOS, *(text + FIRST), EOS])}


def collate(items):
    labels = torch.nn.utils.rnn.pad_sequence([x["labels"] for x in items], batch_first=True, padding_value=-100)
    return {"pixel_values": torch.stack([x["pixel_values"] for x in items]), "labels": labels}


def build(args):
    vit = ViTConfig(hidden_size=args.hidden, num_hidden_layers=args.layers, num_attention_heads=args.hidden // 64,
                    intermediate_size=4 * args.hidden, image_size=(64, args.width), patch_size=8)
    dec = TrOCRConfig(vocab_size=args.charset + FIRST, d_model=256, decoder_layers=args.layers // 2, decoder_attention_heads=8,
                      decoder_ffn_dim=1024, max_position_embeddings=128, cross_attention_hidden_size=args.hidden,
                      pad_token_id=PAD, bos_token_id=BOS, eos_token_id=EOS, decoder_start_token_id=EOS, use_cache=False,
                      is_decoder=True, add_cross_attention=True)
    model = VisionEncoderDecoderModel(encoder=ViTModel(vit, add_pooling_layer=False), decoder=TrOCRForCausalLM(dec))
    model.config.decoder_start_token_id = EOS
    model.config.pad_token_id = PAD
    return model


def preprocess_logits(logits, labels):
    if isinstance(logits, tuple):
        logits = logits[0]
    return logits.argmax(-1)


def metrics(p):
    keep = p.label_ids != -100
    right = (p.predictions == p.label_ids) & keep
    lines = (right | ~keep).all(1)
    return {"char_accuracy": right.sum() / keep.sum(), "line_accuracy": lines.mean()}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch_size", type=int, default=48)
    ap.add_argument("--hidden", type=int, default=384)
    ap.add_argument("--layers", type=int, default=12)
    ap.add_argument("--width", type=int, default=512)
    ap.add_argument("--charset", type=int, default=90)
    ap.add_argument("--lines", type=int, default=4800)
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--workers", type=int, default=3)
    args = ap.parse_args()
    set_seed(7)
    with tempfile.TemporaryDirectory() as out:
        training_args = TrainingArguments(
            output_dir=out, per_device_train_batch_size=args.batch_size, per_device_eval_batch_size=2 * args.batch_size,
            num_train_epochs=args.epochs, learning_rate=3e-4, warmup_steps=20, lr_scheduler_type="cosine", weight_decay=0.01,
            bf16=torch.cuda.is_available(), eval_strategy="epoch", save_strategy="no", logging_steps=20, report_to="none",
            dataloader_num_workers=args.workers, max_grad_norm=1.0, label_names=["labels"], remove_unused_columns=False)
        trainer = Trainer(model=build(args), args=training_args, train_dataset=Lines(args.lines, args.width, args.charset, 1),
                          eval_dataset=Lines(args.lines // 10, args.width, args.charset, 2), data_collator=collate,
                          compute_metrics=metrics, preprocess_logits_for_metrics=preprocess_logits)
        trainer.train()
        print(trainer.evaluate())


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
