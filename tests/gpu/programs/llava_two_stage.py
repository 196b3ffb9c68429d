"""LLaVA in two stages (transformers Llava classes): projector alignment with everything else frozen, then the language
model is unfrozen too. Accelerate, bf16 autocast, gradient accumulation."""
import argparse
import os
import random
import tempfile

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset
from transformers import (CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration,
                          get_cosine_schedule_with_warmup)

IMAGE_TOKEN, PAD = 32000, 32001
VOCAB = 32064


class ImageConversations(Dataset):
    def __init__(self, n, image_size, n_patches, seed, max_text=160):
        self.rng = random.Random(seed)
        self.lengths = [(self.rng.randint(8, 40), self.rng.randint(10, max_text)) for _ in range(n)]
        self.image_size, self.n_patches, self.seed = image_size, n_patches, seed

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 9973 + i)
        q, a = self.lengths[i]
        color = torch.randint(0, 3, (1,), generator=g).item()
        img = torch.rand(3, 14, 14, generator=g)
        img[color] += 1
        img = F.interpolate(img[None], size=(self.image_size,) * 2)[0]
        question = torch.randint(5, 2000, (q,), generator=g)
        answer = (torch.arange(a) * (color + 1)) % 900 + 3000
        ids = torch.cat([torch.tensor([1]), torch.full((self.n_patches,), IMAGE_TOKEN), question, answer, torch.tensor([2])])
        labels = ids.clone()
        labels[:1 + self.n_patches + q] = -100
        return ids, labels, (img - 0.48) / 0.27


def collate(batch):
    ids = torch.nn.utils.rnn.pad_sequence([b[0] for b in batch], batch_first=True, padding_value=PAD)
    labels = torch.nn.utils.rnn.pad_sequence([b[1] for b in batch], batch_first=True, padding_value=-100)
    return {"input_ids": ids, "labels": labels, "attention_mask": (ids != PAD).long(), "pixel_values": torch.stack([b[2] for b in batch])}


def build(a):
    vision = CLIPVisionConfig(hidden_size=a.vision_hidden, intermediate_size=a.vision_hidden * 4, num_hidden_layers=a.vision_layers,
                              num_attention_heads=a.vision_hidden // 64, image_size=a.image_size, patch_size=14)
    text = LlamaConfig(vocab_size=VOCAB, hidden_size=a.hidden, intermediate_size=a.hidden * 11 // 4, num_hidden_layers=a.layers,
                       num_attention_heads=a.hidden // 64, num_key_value_heads=a.hidden // 64, pad_token_id=PAD)
    return LlavaForConditionalGeneration(LlavaConfig(vision_config=vision, text_config=text, image_token_index=IMAGE_TOKEN,
                                                     image_token_id=IMAGE_TOKEN))


def stage(name, a, accelerator, model, train_set, val_set, trainable, lr, batch_size, accum):
    for n, p in model.named_parameters():
        p.requires_grad_(any(t in n for t in trainable))
    params = [p for p in model.parameters() if p.requires_grad]
    accelerator.print(f"{name}: {sum(p.numel() for p in params) / 1e6:.1f}M trainable")
    accelerator.gradient_accumulation_steps = accum
    loader = DataLoader(train_set, batch_size, shuffle=True, collate_fn=collate, drop_last=True)
    val = DataLoader(val_set, batch_size, collate_fn=collate)
    opt = torch.optim.AdamW(params, lr=lr, weight_decay=0.0)
    sched = get_cosine_schedule_with_warmup(opt, 2, len(loader) // accum)
    wrapped, opt, loader, val, sched = accelerator.prepare(model, opt, loader, val, sched)
    wrapped.train()
    for i, batch in enumerate(loader):
        with accelerator.accumulate(wrapped):
            loss = wrapped(**batch).loss
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(params, 1.0)
            opt.step()
            sched.step()
            opt.zero_grad()
        if i % 8 == 0:
            accelerator.print(f"{name} {i}/{len(loader)} loss {loss.item():.4f}")
    wrapped.eval()
    with torch.no_grad():
        v = [accelerator.gather(wrapped(**batch).loss.detach()).mean().item() for batch in val]
    accelerator.print(f"{name} val loss {sum(v) / len(v):.4f}")


def main(a):
    set_seed(0)
    accelerator = Accelerator(mixed_precision="bf16")
    model = build(a)
    n_patches = (a.image_size // 14) ** 2
    train, val = ImageConversations(a.n, a.image_size, n_patches, 1), ImageConversations(a.n_val, a.image_size, n_patches, 2)
    out = tempfile.mkdtemp()
    stage("pretrain", a, accelerator, model, train, val, ["multi_modal_projector"], 1e-3, a.batch_size, 1)
    proj = {k: v for k, v in accelerator.unwrap_model(model).state_dict().items() if "multi_modal_projector" in k}
    torch.save(proj, os.path.join(out, "mm_projector.bin"))
    stage("finetune", a, accelerator, model, train, val, ["multi_modal_projector", "language_model", "lm_head"], 2e-5,
          a.batch_size // 2, 2)
    accelerator.unwrap_model(model).save_pretrained(os.path.join(out, "final"))


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--image_size", type=int, default=224)
    p.add_argument("--vision_hidden", type=int, default=768)
    p.add_argument("--vision_layers", type=int, default=12)
    p.add_argument("--hidden", type=int, default=1024)
    p.add_argument("--layers", type=int, default=12)
    p.add_argument("--batch_size", type=int, default=12)
    p.add_argument("--n", type=int, default=240)
    p.add_argument("--n_val", type=int, default=36)
    main(p.parse_args())
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
