"""GRPO in one file: a small Qwen3 policy, group-relative advantages, clipped ratio, KL to a frozen reference (pure bf16)."""
import copy
import os
import random
import tempfile
import time

import torch
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_
from transformers import Qwen3Config, Qwen3ForCausalLM

SEED = 0
VOCAB = 65536
HIDDEN, LAYERS = 1024, 14
PROMPTS_PER_STEP = 4
GROUP_SIZE = 8
MAX_NEW_TOKENS = 96
MICRO_BATCH = 8
STEPS = 8
EPOCHS_PER_STEP = 2
CLIP_EPS = 0.2
KL_WEIGHT = 0.01
LR = 5e-6
PAD, EOS = 0, 1
DEVICE = "cuda"


def make_prompt(rng):
    n = rng.randint(12, 60)
    return [10 + rng.randrange(200) for _ in range(n)]


def reward_fn(prompt, completion):
    """Format-like reward: even tokens are good, long outputs a little bad, seeing the last prompt token is best."""
    if not completion:
        return -1.0
    even = sum(1 for t in completion if t % 2 == 0) / len(completion)
    return even - 0.001 * len(completion) + (1.0 if prompt[-1] in completion else 0.0)


def log_probs_of(model, input_ids, attention_mask, return_entropy=False):
    position_ids = attention_mask.long().cumsum(dim=-1) - 1
    position_ids.masked_fill_(attention_mask == 0, 1)
    logits = model(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids, use_cache=False).logits
    logits = logits[:, :-1].to(torch.float32)
    lp = F.log_softmax(logits, dim=-1)
    out = lp.gather(-1, input_ids[:, 1:].unsqueeze(-1)).squeeze(-1)
    return out


@torch.no_grad()
def rollout(model, prompts):
    model.eval()
    longest = max(len(p) for p in prompts)
    ids = torch.full((len(prompts), longest), PAD)
    mask = torch.zeros_like(ids)
    for i, p in enumerate(prompts):
        ids[i, longest - len(p):] = torch.tensor(p)
        mask[i, longest - len(p):] = 1
    ids, mask = ids.to(DEVICE).repeat_interleave(GROUP_SIZE, 0), mask.to(DEVICE).repeat_interleave(GROUP_SIZE, 0)
    seqs = model.generate(input_ids=ids, attention_mask=mask, do_sample=True, temperature=1.0, top_p=1.0, top_k=0,
                          max_new_tokens=MAX_NEW_TOKENS, pad_token_id=PAD, eos_token_id=EOS)
    comp = seqs[:, longest:]
    action = torch.zeros_like(seqs, dtype=torch.bool)
    action[:, longest:] = True
    action[seqs == PAD] = False
    rewards = []
    for i, c in enumerate(comp.tolist()):
        c = [t for t in c if t not in (PAD, EOS)]
        rewards.append(reward_fn(prompts[i // GROUP_SIZE], c))
    rewards = torch.tensor(rewards, device=DEVICE)
    full_mask = torch.cat([mask, (comp != PAD).long()], dim=1)
    return seqs, full_mask, action[:, 1:], rewards


def main():
    random.seed(SEED)
    torch.manual_seed(SEED)
    rng = random.Random(SEED)
    config = Qwen3Config(vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=HIDDEN * 3, num_hidden_layers=LAYERS,
                         num_attention_heads=16, num_key_value_heads=8, head_dim=64, max_position_embeddings=4096,
                         tie_word_embeddings=True, pad_token_id=PAD, eos_token_id=EOS)
    model = Qwen3ForCausalLM(config).to(torch.bfloat16).to(DEVICE)
    reference = copy.deepcopy(model).eval().requires_grad_(False)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR)
    out = tempfile.mkdtemp()
    for step in range(STEPS):
        t0 = time.time()
        prompts = [make_prompt(rng) for _ in range(PROMPTS_PER_STEP)]
        seqs, mask, action, rewards = rollout(model, prompts)
        grouped = rewards.view(PROMPTS_PER_STEP, GROUP_SIZE)
        adv = ((grouped - grouped.mean(1, keepdim=True)) / (grouped.std(1, keepdim=True) + 1e-8)).view(-1, 1)
        buffer = []
        with torch.no_grad():
            for i in range(0, len(seqs), MICRO_BATCH):
                sl = slice(i, i + MICRO_BATCH)
                old = log_probs_of(model, seqs[sl], mask[sl])
                ref = log_probs_of(reference, seqs[sl], mask[sl])
                buffer.append({"seqs": seqs[sl], "mask": mask[sl], "action": action[sl], "old": old, "ref": ref, "adv": adv[sl]})
        model.train()
        kls, losses, norms = [], [], []
        for _ in range(EPOCHS_PER_STEP):
            random.shuffle(buffer)
            optimizer.zero_grad()
            for exp in buffer:
                lp = log_probs_of(model, exp["seqs"], exp["mask"])
                log_ratio = exp["ref"] - lp
                kl = log_ratio.exp() - log_ratio - 1
                ratio = (lp - exp["old"]).exp()
                surr = torch.min(ratio * exp["adv"], ratio.clamp(1 - CLIP_EPS, 1 + CLIP_EPS) * exp["adv"])
                loss = -surr + KL_WEIGHT * kl
                loss = ((loss * exp["action"]).sum(-1) / exp["action"].sum(-1).clamp(min=1)).mean()
                if not loss.isfinite():
                    print("Loss not finite, skipping backward")
                    continue
                (loss / len(buffer)).backward()
                losses.append(loss.item())
                kls.append((kl * exp["action"]).sum().item() / max(1, exp["action"].sum().item()))
            norms.append(clip_grad_norm_(model.parameters(), max_norm=1.0).item())
            optimizer.step()
        print(f"step {step}: reward {rewards.mean().item():.3f} +- {rewards.std().item():.3f} loss {sum(losses) / len(losses):.4f} "
              f"kl {sum(kls) / len(kls):.5f} grad_norm {norms[-1]:.3f} len {seqs.shape[1]} {time.time() - t0:.1f}s")
        if (step + 1) % 4 == 0:
            model.save_pretrained(os.path.join(out, f"step_{step}"))


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
