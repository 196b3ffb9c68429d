# SPDX-License-Identifier: Apache-2.0
"""The second of two ranks: attention over both halves of a sequence (ring), then experts on both
ranks. Its optimizer steps within a stand-in for DeepSpeed's engine."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import context_parallel
from torch.nn import functional

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "standin"))
from deepspeed.ops.op_builder.builder import FusedAdamBuilder, OpBuilder
from deepspeed.runtime.engine import DeepSpeedEngine

os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29500", RANK="1", WORLD_SIZE="2")
WIDE, HEADS, ROWS, LONG, EXPERTS, CHOSEN, WORLD = 64, 2, 2, 512, 8, 2, 2
dist.init_process_group("nccl")
mesh = init_device_mesh("cuda", (WORLD,))


class Builder(OpBuilder):
    def is_compatible(self, verbose=False):
        raise AssertionError("a compiler was asked")


assert FusedAdamBuilder("fused_adam").is_compatible()
FusedAdamBuilder("fused_adam").load().multi_tensor_adam(65536, None, [])
assert not Builder("async_io").is_compatible()

with torch.device("meta"):
    experts = nn.ModuleList(nn.Linear(WIDE, WIDE) for _ in range(EXPERTS // WORLD))
experts = experts.to_empty(device="cuda").to("meta").to_empty(device="cuda")
before = nn.Linear(WIDE, 3 * WIDE).cuda().bfloat16()
gate = nn.Linear(WIDE, EXPERTS).cuda()


@torch.compile
def nobody_calls(x):
    return x * x


class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, received, sent):
        ctx.counts = sent, received
        return exchanged(rows, received, sent)

    @staticmethod
    def backward(ctx, grad):
        return exchanged(grad.contiguous(), *ctx.counts), None, None


def exchanged(rows, received, sent):
    out = rows.new_empty(sum(received), rows.shape[1])
    dist.all_to_all_single(out, rows, received, sent)
    return out


def through_experts(x):
    weights, chosen = gate(x).softmax(-1).topk(CHOSEN, dim=-1)
    counts = functional.one_hot(chosen.flatten(), EXPERTS).sum(0)
    other = torch.bincount(chosen.flatten(), minlength=EXPERTS)
    third = torch.zeros_like(counts).scatter_add_(
        0, chosen.flatten(), other.new_ones(chosen.numel())
    )
    assert counts.tolist() == other.tolist() == third.tolist(), (counts, other, third)
    numbers = torch.histc(chosen.float(), EXPERTS, 0, EXPERTS - 1)
    assert counts.tolist() == numbers.long().tolist(), (counts, numbers)
    every = torch.empty(WORLD * EXPERTS, dtype=torch.int64, device="cuda")
    dist.all_gather_into_tensor(every, counts)
    assert every.tolist() == WORLD * counts.tolist(), every
    theirs = torch.empty_like(counts)
    dist.all_to_all_single(theirs, counts)
    sent, received = (c.view(WORLD, -1).sum(1).tolist() for c in (counts, theirs))
    order = chosen.flatten().argsort(stable=True)
    got = Exchange.apply(x[order // CHOSEN], received, sent)
    parts = got.split(theirs.view(WORLD, -1).sum(0).tolist())
    done = torch.cat([expert(part) for expert, part in zip(experts, parts)])
    back = Exchange.apply(done, sent, received) * weights.flatten()[order, None]
    return torch.zeros_like(x).index_add(0, order // CHOSEN, back)


def attended(x):
    shape = x.shape[0], x.shape[1], 3, HEADS, WIDE // HEADS
    query, key, value = before(x).view(shape).permute(2, 0, 3, 1, 4)
    out = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return out.transpose(1, 2).flatten(2)


def overflows(gradients):
    count = torch.zeros(1, device="cuda")
    for gradient in gradients:
        large = torch.empty(70000, device="cuda")
        count += torch.isinf(gradient.float()).logical_or(gradient.isnan()).any()
        count += large.isinf().logical_or(large.isnan()).float().max()
    return bool(count.byte().item())


groups = [{"params": list(part.parameters())} for part in (before, gate, experts)]
engine = DeepSpeedEngine(torch.optim.AdamW(groups))
for _ in range(4):
    x = torch.ones(ROWS, LONG, WIDE, device="cuda", dtype=torch.bfloat16)
    with context_parallel(mesh, buffers=(x,), buffer_seq_dims=(1,), no_restore_buffers={x}):
        out = through_experts(attended(x).flatten(0, 1).float())
        out.sum().backward()
    assert not overflows([p.grad for p in before.parameters()])
    engine._take_model_step()
    engine.optimizer.zero_grad()
