#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/fit/make_events.py: writes the event files beside it (layout: src/formats/model/trace_events.h).

A model of two layers, trained with AdamW in steps whose sizes can be reckoned by hand. Bytes, at batch b:
weights 40 Mi and 24 Mi; optimizer state twice that; input b x 1 Mi; activations b x 8 Mi and b x 4 Mi; gradients as weights."""
import json
import os

MI = 1 << 20
TEXT, SITE, ALLOC, FREE, MARK, CALL, CATEGORY, NOTE, FACT, END = range(1, 11)
PARAMETER, BUFFER, GRADIENT, STATE, INPUT, GATHERED = range(1, 7)
SETUP, FORWARD, BACKWARD, OPTIMIZER, OTHER, VALIDATION = range(6)


class Events:
    def __init__(self, name, **facts):
        self.path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".events")
        self.out, self.texts, self.sites, self.count = bytearray(b"CUFITEV1"), {}, {}, 0
        for key, value in dict({"torch": "2.11.0+cu130", "python": "3.12.3", "cuda": "13.0"}, **facts).items():
            self.record(FACT, self.text(key), self.text(str(value)))

    def record(self, kind, *numbers):
        self.out.append(kind)
        for number in numbers:
            while number > 0x7F:
                self.out.append(number & 0x7F | 0x80)
                number >>= 7
            self.out.append(number)

    def text(self, text):
        if text not in self.texts:
            data = text.encode()
            self.record(TEXT, len(data))
            self.out += data
            self.texts[text] = len(self.texts)
        return self.texts[text]

    def site(self, op, module, source, phase):
        key = op, module, source, phase
        if key not in self.sites:
            numbers = self.text(op), self.text(module), self.text(source)
            self.record(SITE, *numbers, phase)
            self.sites[key] = len(self.sites)
        return self.sites[key]

    def alloc(self, size, op, module, source, phase, category=None):
        self.record(ALLOC, size, self.site(op, module, source, phase))
        self.count += 1
        if category:
            self.record(CATEGORY, 0, category)
        return self.count - 1

    def free(self, *storages):
        for storage in storages:
            self.record(FREE, self.count - 1 - storage)

    def note(self, kind, detail, source):
        self.record(NOTE, self.text(kind), self.text(detail), self.text(source))

    def end(self, reason):
        self.record(END, reason)
        with open(self.path, "wb") as file:
            file.write(self.out)


def weights(events):
    return [events.alloc(size * MI, "_to_copy", name, "train.py:14", SETUP, PARAMETER)
            for name, size in (("layer1", 40), ("layer2", 24))]


def step(events, batch, state, extra=False):
    events.record(MARK, 0)
    data = events.alloc(batch * MI, "_to_copy", "", "train.py:20", FORWARD, INPUT)
    kept = [events.alloc(batch * 8 * MI, "addmm", "layer1", "train.py:21", FORWARD),
            events.alloc(batch * 4 * MI, "addmm", "layer2", "train.py:21", FORWARD)]
    if extra:
        events.free(events.alloc(batch * MI, "squeeze_copy", "layer2", "train.py:22", FORWARD))
    grads = []
    for name, size, activation in (("layer2", 24, kept[1]), ("layer1", 40, kept[0])):
        grads.append(events.alloc(size * MI, "mm", name, "train.py:23", BACKWARD, GRADIENT))
        events.free(activation)
    for size in (24, 40) if not state else ():
        for name in ("exp_avg", "exp_avg_sq"):
            state.append(events.alloc(size * MI, "zeros_like", name, "train.py:24", OPTIMIZER, STATE))
    events.record(MARK, 1)
    events.free(data, *grads)


def training(name, at, differs=(), note=False, **facts):
    events = Events(name, steps=3, **facts)
    weights(events)
    state = []
    for _ in range(3):
        step(events, at, state, at in differs)
    if note:
        for line in (25, 26):
            events.note("data_dependent", "float32 value read; 1.0 was given", "train.py:%d" % line)
        events.note("scratch", "torch.save(last.pt) was not done", "train.py:30")
    events.end(0)


for size in (8, 16):
    training("small-%d" % size, size, note=True, batch=size, batch_found=8, batch_from="DataLoader train.py:12")
    training("fixed-%d" % size, 8, batch=8, batch_found=8, batch_from="DataLoader train.py:12")
    training("idle-%d" % size, 8, batch=size, batch_found=8, batch_from="DataLoader train.py:12")
    training("apart-%d" % size, size, differs=(16,), batch=size, batch_found=8, batch_from="DataLoader train.py:12")
    training("plain-%d" % size, size)
    training("shown-%d" % size, size, batch=size, batch_found=size, batch_from="DataLoader train.py:12")
# Those that the search for a largest batch asks for (tests/cli/fit/differs_search.test), and one that is asked for.
for size in (24, 32, 31, 27):
    training("apart-%d" % size, size, differs=(16,), batch=size, batch_found=8, batch_from="DataLoader train.py:12")
# A program that does nothing at 16: its step is 0 micro-batches.
training("nothing-8", 8, batch=8, batch_found=8, batch_from="DataLoader train.py:12")
nothing = Events("nothing-16", steps=3, batch=16, batch_found=8, batch_from="DataLoader train.py:12")
weights(nothing)
for _ in range(3):
    nothing.record(MARK, 0)
    nothing.free(nothing.alloc(16 * MI, "_to_copy", "", "train.py:20", FORWARD, INPUT))
    nothing.record(MARK, 1)
nothing.end(0)
for size in (1, 2, 4):
    training("one-%d" % size, size, differs=(1,), batch=size, batch_found=1, batch_from="DataLoader train.py:12")

# Ranks of a group: weights, gradients and state are dealt out, the last rank's loss takes 64 Mi more for each row.
def rank_of(kind, world, rank, size, differ=""):
    facts = {"batch": size, "batch_found": 8, "batch_from": "DataLoader train.py:12", "rank": rank, "world_size": world, "node_size": min(world, 8),
             "world": world}
    if differ:
        facts["ranks_differ"] = differ
    if kind == "shared":  # `--train --strategy`
        facts = {key: facts[key] for key in facts if not key.startswith("batch_")}
        facts["strategy"] = "zero3"
    dealt = Events("%s-w%d-r%d-%d" % (kind, world, rank, size), steps=3, **facts)
    if kind == "shared":
        for note, detail in (("per_rank", ""), ("strategy_zero3", ""), ("sharded_precision", "bf16"), ("wrapped", "2: LlamaDecoderLayer")):
            dealt.note("model_" + note, detail, "")
    share = 1 if kind == "whole" else world
    for name, of in (("layer1", 4000), ("layer2", 2400)):
        dealt.alloc(of * MI // share, "_to_copy", name, "train.py:14", SETUP, PARAMETER)
    for _ in range(3):
        dealt.record(MARK, 0)
        rows = dealt.alloc(size * MI, "_to_copy", "", "train.py:20", FORWARD, INPUT)
        kept = [dealt.alloc(size * 12 * MI, "addmm", "layer1", "train.py:21", FORWARD)]
        if differ and rank == world - 1:
            kept.append(dealt.alloc(size * 64 * MI, "nll_loss", "loss", "train.py:22", FORWARD))
        gradient = dealt.alloc(6400 * MI // share, "mm", "layer1", "train.py:23", BACKWARD, GRADIENT)
        dealt.record(MARK, 1)
        dealt.free(rows, *kept, gradient)
    dealt.end(0)


for size in (8, 16):
    for rank in (0, 1):
        rank_of("stages", 2, rank, size, "stages of a pipeline")
    for world in (1, 2, 4, 8):
        rank_of("dealt", world, 0, size)
rank_of("dealt", 2, 1, 8)
rank_of("dealt", 16, 0, 8)
for world in (2, 4):
    rank_of("whole", world, 0, 8)
    rank_of("shared", world, 0, 8)
rank_of("shared", 2, 0, 16)

# Validation with batches of 64 whatever the batch size of training is: 8 Mi and 4 Mi per row, nothing kept.
for size in (8, 16):
    validated = Events("validated-%d" % size, steps=3, batch=size, batch_found=8, batch_from="DataLoader train.py:12")
    weights(validated)
    held = []
    for _ in range(3):
        step(validated, size, held)
    validated.record(MARK, 3)
    for _ in range(3):
        rows = validated.alloc(64 * MI, "_to_copy", "", "train.py:30", OTHER, INPUT)
        first = validated.alloc(64 * 8 * MI, "addmm", "layer1", "train.py:31", VALIDATION)
        second = validated.alloc(64 * 4 * MI, "addmm", "layer2", "train.py:31", VALIDATION)
        validated.free(first, second, rows)
    if size == 16:
        validated.note("assumed", "after the steps batches of 64 are loaded, whatever the batch size of the steps is; "
                       "with `--batch-arg` the program sets both", "train.py:13")
    validated.end(0)

failing = Events("failing-8", batch=8, batch_found=8)
weights(failing)
failing.note("no_fake_kernel", "mylib::fast_norm", "train.py:21")
failing.note("error", "RuntimeError: mylib::fast_norm has no fake kernel", "train.py:21")
failing.end(2)

untold = Events("untold-8", batch=8, batch_found=8, rank=1, world_size=2, node_size=2)
weights(untold)
untold.note("assumed", "how many of each value there are (tokens of each expert) depends on values: as many of each", "train.py:20")
untold.note("error", "RuntimeError: what rank 0 sends to rank 1 is not known: it was not traced before", "train.py:21")
untold.end(2)

stuck = Events("stuck-8", batch=8, batch_found=8)
weights(stuck)
stuck.note("timed_out", "readinto (socket.py:718)", "train.py:17")
stuck.end(2)

slow = Events("slow-8", batch=8, batch_found=8)
weights(slow)
held = []
for _ in range(2):
    step(slow, 8, held)
slow.note("timed_out", "", "train.py:21")
slow.end(2)

late = Events("late-8", batch=8, batch_found=8)
weights(late)
held = []
for _ in range(2):
    step(late, 8, held)
late.note("error", "FileNotFoundError: [Errno 2] No such file or directory: 'validation.json'", "train.py:33")
late.end(2)

for size in (8, 16):
    built = Events("model-%d" % size, steps=3, batch=size)
    for kind, detail in (("estimate", ""), ("frozen", "bf16"), ("adamw_fused", ""), ("checkpointing_off", ""), ("text", "128"),
                         ("built", "LlamaForCausalLM, 67,108,864, transformers 5.17.0"), ("trained", "67,108,864")):
        built.note("model_" + kind, detail, "")
    weights(built)
    held = []
    for _ in range(3):
        step(built, size, held)
    built.end(0)

for kind, detail in (("missing", "diffusers"), ("class", "NewForCausalLM (transformers 5.17.0)"), ("targets", "no module named `query`"),
                     ("tp", "GPT2LMHeadModel")):
    lacking = Events("model-%s-8" % kind, batch=8)
    lacking.note("model_estimate", "", "")
    lacking.note("model_stop_" + kind, detail, "")
    lacking.end(2)

# Headers alone: tensors that tell what a checkpoint is.
def header(path, tensors):
    at, rows = 0, {}
    for name, (dtype, shape) in tensors.items():
        size = {"F16": 2, "BF16": 2, "F32": 4, "I32": 4}[dtype]
        for each in shape:
            size *= each
        rows[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(rows, separators=(",", ":")).encode()
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models", path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)


UNET = "model.diffusion_model."
header("sdxl.safetensors", {UNET + "input_blocks.0.0.weight": ("F16", [320, 4, 3, 3]), UNET + "label_emb.0.0.weight": ("F16", [1280, 2816]),
                            "conditioner.embedders.1.model.ln_final.weight": ("F16", [1280])})
header("lora.safetensors", {"lora_unet_mid_block_attentions_0_proj_in.lora_down.weight": ("F16", [64, 1280])})
header("unknown.safetensors", {"encoder.weight": ("F32", [4, 4])})
header("llama/model.safetensors", {"model.embed_tokens.weight": ("BF16", [32000, 512])})
header("gptq/model.safetensors", {"model.layers.0.mlp.up_proj.qweight": ("I32", [64, 64])})

idle = Events("nostep-8")
weights(idle)
idle.end(1)
Events("cpu-8").end(1)


# Made for plans (src/fit/trace_parts.h): a step over two micro-batches behind the three, what the second step computes and moves, and what could
# be switched on. Activations
# are eight times those above, in half precision four times; with checkpointing 2 Mi a sample of each layer are kept, and the rest is made again.
# Of eight ranks: DistributedDataParallel, and FSDP, which gathers each layer for each pass.
def plan_training(name, at, switches, ranks=1, **facts):
    half, recompute = "bf16" in switches, "checkpointing" in switches
    share = ranks if "fsdp" in switches else 1
    if ranks > 1:
        facts.update(rank=0, world_size=ranks, node_size=ranks, world=ranks)
    events = Events(name, steps=3, **facts)
    for layer, size in (("layer1", 40), ("layer2", 24)):
        events.alloc(size * MI // share, "_to_copy", layer, "train.py:14", SETUP, PARAMETER)

    def gather(phase):
        for layer, size in (("layer1", 40), ("layer2", 24)) if share > 1 else ():
            events.free(events.alloc(size * MI, "all_gather_copy_out", layer, "", phase, GATHERED))

    state, bits = [], 16 if half else 32

    def work(phase, times):
        if state:
            events.record(CALL, events.site("matmul", "", "train.py:21", phase), 6, bits, 0, 1, at * 1024, 4096 * times, 4096)
            events.record(CALL, events.site("moved", "", "", phase), 2, at * times * 100 * MI * bits // 32, 10 * times)

    def passes(grads):
        data = events.alloc(at * MI, "_to_copy", "", "train.py:20", FORWARD, INPUT)
        sizes = [at * 64 * MI // (2 if half else 1), at * 32 * MI // (2 if half else 1)]
        gather(FORWARD)
        kept = [events.alloc(at * 2 * MI if recompute else size, "addmm", layer, "train.py:21", FORWARD) for size, layer in zip(sizes, ("layer1", "layer2"))]
        work(FORWARD, 1)
        made = []
        gather(BACKWARD)
        for layer, size in (("layer2", 24), ("layer1", 40)):
            again = [events.alloc(sizes[layer == "layer2"], "addmm", layer, "train.py:21", BACKWARD)] if recompute else []
            made.append(events.alloc(size * MI // share, "mm", layer, "train.py:23", BACKWARD, GRADIENT))
            events.free(*again, kept[layer == "layer2"])
        work(BACKWARD, 3 if recompute else 2)
        if grads:  # added to what is there
            events.free(*made)
        events.free(data)
        return grads or made

    grads = []
    for number in range(3):
        events.record(MARK, 0)
        events.free(*grads)
        grads = passes([])
        for size in (24, 40) if not state else ():
            state.extend(events.alloc(size * MI // share, "zeros_like", "exp_avg", "train.py:24", OPTIMIZER, STATE) for _ in range(2))
        if number == 1:
            events.record(CALL, events.site("moved", "", "", OPTIMIZER), 2, 7 * 64 * MI // share, 20)
        events.record(MARK, 1)
    facts = {"variant": ",".join(switches), "micro_batches": 1, "framework": "", "autocast": "", "precision": "float32",
             "checkpointing": "on" if recompute else "blocks", "checkpointing_at": "layer1 layer2", "optimizer": "AdamW", "optimizer_form": "fused",
             "optimizer_can": "fused", "optimizer_at": "train.py:15", "forward_at": "train.py:21"}
    if ranks > 1:
        facts.update(data_parallel="ddp", data_parallel_at="train.py:16", blocks_at="module.layers",
                     weights_bytes=64 * MI, trained_bytes=64 * MI)
    for key, value in facts.items():
        events.record(FACT, events.text(key), events.text(str(value)))
    events.record(MARK, 2)
    events.record(MARK, 0)
    events.free(*grads)
    passes(passes([]))
    events.record(MARK, 1)
    events.record(FACT, events.text("accumulated"), events.text("1"))
    events.end(0)


for size in (8, 16):
    for switches in ((), ("bf16",), ("checkpointing",), ("bf16", "checkpointing")):
        plan_training("-".join(("plan",) + switches + (str(size),)), size, switches, batch=size, batch_found=8, batch_from="DataLoader train.py:12")
    for switches in ((), ("fsdp",), ("zero1",)):
        plan_training("-".join(("copies",) + switches + (str(size),)), size, switches, 8, batch=size, batch_found=8, batch_from="DataLoader train.py:12")
