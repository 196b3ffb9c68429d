"""Minimal GRPO on a Qwen2-like policy: sample groups with generate, rule reward, clipped policy loss + KL."""
import argparse
import random
import time

import torch
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader, TensorDataset
from transformers import GenerationConfig, Qwen2Config, Qwen2ForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--hidden", type=int, default=640)
parser.add_argument("--layers", type=int, default=12)
parser.add_argument("--vocab", type=int, default=32000)
parser.add_argument("--prompt_len", type=int, default=48)
parser.add_argument("--max_new", type=int, default=72)
parser.add_argument("--group_size", type=int, default=8)
parser.add_argument("--rollouts_per_step", type=int, default=6)
parser.add_argument("--train_batch_size", type=int, default=12)
parser.add_argument("--epochs_per_step", type=int, default=1)
parser.add_argument("--iters", type=int, default=5)
args = parser.parse_args()
random.seed(0)
torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
PAD = 0


def load_model():
    cfg = Qwen2Config(vocab_size=args.vocab, hidden_size=args.hidden, intermediate_size=args.hidden * 4, num_hidden_layers=args.layers,
                      num_attention_heads=10, num_key_value_heads=2, max_position_embeddings=1024, pad_token_id=PAD, eos_token_id=2,
                      bos_token_id=1, attn_implementation="sdpa")
    return Qwen2ForCausalLM(cfg).to(device, torch.bfloat16)


@torch.no_grad()
def rollout(model, prompt):
    model.eval()
    ids = prompt.repeat(args.group_size, 1).to(device)
    mask = (ids != PAD).long()
    gen = GenerationConfig(do_sample=True, top_p=1.0, temperature=1.0, max_new_tokens=args.max_new, pad_token_id=PAD, eos_token_id=2)
    seq = model.generate(input_ids=ids, attention_mask=mask, generation_config=gen)
    completion_mask = torch.zeros_like(seq, dtype=torch.bool)
    completion_mask[:, ids.shape[1]:] = True
    completion_mask[seq == PAD] = False
    completion_mask = completion_mask[:, 1:]
    target = int(prompt.sum()) % 97
    returns = torch.tensor([[float((s[ids.shape[1]:] % 97 == target).any()) + 0.01 * float((s % 2 == 0).float().mean())] for s in seq], device=device)
    return seq, returns, completion_mask


def sequence_log_probs(logits, ids):
    return torch.gather(F.log_softmax(logits, dim=-1), -1, ids.unsqueeze(-1)).squeeze(-1)


def log_probs_of(model, seq, mask):
    pos = (mask.long().cumsum(-1) - 1).clamp(min=0)
    out = model(input_ids=seq, attention_mask=mask, position_ids=pos, use_cache=False)
    return sequence_log_probs(out.logits[:, :-1].to(torch.float32), seq[:, 1:])


def masked_mean(x, mask, dim=None):
    if dim is None:
        return (x * mask).sum() / mask.sum()
    return (x * mask).sum(dim) / mask.sum(dim).clamp(min=1)


def grpo_loss(logp, exp, clip_eps=0.2, kl_weight=0.01):
    r = exp["logp_ref"] - logp
    kl = r.exp() - r - 1
    ratio = (logp - exp["logp"]).exp()
    surr = torch.min(ratio * exp["adv"], ratio.clamp(1 - clip_eps, 1 + clip_eps) * exp["adv"])
    return masked_mean(-surr + kl_weight * kl, exp["mask"], dim=-1).mean(), kl.mean()


def pad_to(x, length, value=0):
    return F.pad(x, (length - x.shape[1], 0), value=value)


reference, model = load_model(), load_model()
reference.load_state_dict(model.state_dict())
reference.eval()
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
optimizer = torch.optim.Adam(model.parameters(), lr=5e-6)

prompts = torch.randint(5, args.vocab, (args.rollouts_per_step * args.iters, args.prompt_len))
for i in range(len(prompts)):
    prompts[i, : random.randint(0, args.prompt_len // 2)] = PAD
loader = DataLoader(TensorDataset(prompts), batch_size=args.rollouts_per_step, shuffle=True, drop_last=True)

for k, (batch,) in enumerate(loader):
    t0 = time.time()
    buffer, rollout_returns = [], []
    with torch.no_grad():
        for p in batch:
            seq, returns, action_mask = rollout(model, p[None])
            rollout_returns.append(returns.cpu())
            adv = (returns - returns.mean()) / (returns.std() + 1e-8)
            attn = (seq != PAD).long()
            exp = {"seq": seq, "attn": attn, "logp": log_probs_of(model, seq, attn), "logp_ref": log_probs_of(reference, seq, attn),
                   "adv": adv, "mask": action_mask}
            buffer.append({k_: v.cpu() for k_, v in exp.items()})
    torch.cuda.empty_cache()
    print(f"returns of step {k}: {torch.stack(rollout_returns).sum():.3f}")

    longest = max(b["seq"].shape[1] for b in buffer)
    merged = {"adv": torch.cat([b["adv"] for b in buffer])}
    for key in ["seq", "attn"]:
        merged[key] = torch.cat([pad_to(b[key], longest) for b in buffer])
    for key in ["logp", "logp_ref", "mask"]:
        merged[key] = torch.cat([pad_to(b[key], longest - 1) for b in buffer])
    keys = list(merged)
    exp_loader = DataLoader(TensorDataset(*merged.values()), batch_size=args.train_batch_size, shuffle=True, drop_last=True)
    for _ in range(args.epochs_per_step):
        model.train()
        for tensors in exp_loader:
            exp = {n: t.to(device) for n, t in zip(keys, tensors)}
            optimizer.zero_grad()
            logp = log_probs_of(model, exp["seq"], exp["attn"])
            loss, kl = grpo_loss(logp, exp)
            if not loss.isfinite():
                print("loss not finite, skipping")
                continue
            loss.backward()
            gn = clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
        print(f"step {k}: kl={kl.item():.4f} grad_norm={gn.item():.3f} {time.time() - t0:.1f}s")

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
