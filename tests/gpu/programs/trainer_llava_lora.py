"""Visual instruction tuning of a small LLaVA (CLIP vision tower + projector + Llama), LoRA on the language model, bf16 Trainer."""
import argparse
import tempfile

import torch
from peft import LoraConfig, get_peft_model
from torch.utils.data import Dataset
from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration, Trainer, TrainingArguments, set_seed

p = argparse.ArgumentParser()
p.add_argument("--image_size", type=int, default=336)
p.add_argument("--vis_hidden", type=int, default=768)
p.add_argument("--vis_layers", type=int, default=12)
p.add_argument("--hidden", type=int, default=1024)
p.add_argument("--layers", type=int, default=14)
p.add_argument("--vocab", type=int, default=32000)
p.add_argument("--max_text", type=int, default=256)
p.add_argument("--batch_size", type=int, default=4)
p.add_argument("--n_train", type=int, default=160)
args = p.parse_args()
set_seed(0)
PATCH, IMAGE_TOKEN, PAD = 14, args.vocab, args.vocab + 1
n_img = (args.image_size // PATCH) ** 2


class Conversations(Dataset):
    """<image> question answer; only the answer is supervised"""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.q = [torch.randint(3, args.vocab, (int(torch.randint(8, args.max_text // 4, (1,), generator=g)),), generator=g) for _ in range(n)]
        self.a = [torch.randint(3, args.vocab, (int(torch.randint(16, 3 * args.max_text // 4, (1,), generator=g)),), generator=g) for _ in range(n)]
        self.seed = seed

    def __len__(self):
        return len(self.q)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 9999 + i)
        pixel = torch.nn.functional.interpolate(torch.randn(1, 3, 24, 24, generator=g), size=args.image_size)[0]
        ids = torch.cat([torch.tensor([1]), torch.full((n_img,), IMAGE_TOKEN), self.q[i], self.a[i], torch.tensor([2])])
        labels = ids.clone()
        labels[:1 + n_img + len(self.q[i])] = -100
        return {"input_ids": ids, "labels": labels, "pixel_values": pixel}


def collate(rows):
    pad = lambda k, v: torch.nn.utils.rnn.pad_sequence([r[k] for r in rows], batch_first=True, padding_value=v)
    ids = pad("input_ids", PAD)
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": pad("labels", -100), "pixel_values": torch.stack([r["pixel_values"] for r in rows])}


vision = CLIPVisionConfig(hidden_size=args.vis_hidden, intermediate_size=args.vis_hidden * 4, num_hidden_layers=args.vis_layers, num_attention_heads=12,
                          image_size=args.image_size, patch_size=PATCH)
text = LlamaConfig(vocab_size=args.vocab + 64, hidden_size=args.hidden, intermediate_size=args.hidden * 11 // 4, num_hidden_layers=args.layers,
                   num_attention_heads=16, num_key_value_heads=16, max_position_embeddings=2048, pad_token_id=PAD)
config = LlavaConfig(vision_config=vision, text_config=text, image_token_index=IMAGE_TOKEN, vision_feature_select_strategy="default", vision_feature_layer=-2)
model = LlavaForConditionalGeneration(config).to(torch.bfloat16)
model.config.use_cache = False
lora = LoraConfig(r=64, lora_alpha=128, lora_dropout=0.05, bias="none", modules_to_save=["multi_modal_projector"],
                  target_modules=r".*language_model.*\.(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj)")
model = get_peft_model(model, lora)
model.print_trainable_parameters()

targs = TrainingArguments(
    output_dir=tempfile.mkdtemp(), num_train_epochs=1, per_device_train_batch_size=args.batch_size, per_device_eval_batch_size=args.batch_size,
    gradient_accumulation_steps=2, learning_rate=2e-4, warmup_steps=2, lr_scheduler_type="cosine", weight_decay=0.0, bf16=True,
    logging_steps=4, eval_strategy="epoch", save_strategy="no", prediction_loss_only=True, remove_unused_columns=False, dataloader_num_workers=1, report_to="none")
trainer = Trainer(model=model, args=targs, data_collator=collate, train_dataset=Conversations(args.n_train, 0), eval_dataset=Conversations(args.n_train // 10, 1))
trainer.train()
model.save_pretrained(targs.output_dir)
if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
