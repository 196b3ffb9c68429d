# SPDX-License-Identifier: Apache-2.0
"""One rank of many: how `--strategy` deals a model out. The group is a pretended one, as that of
any program under the tracer."""

import fnmatch
import os

import torch

from .spec import AUTOCAST, DTYPES, SPEC, note, stop, tell

NAMES = [name for name in os.environ.get("CUFIT_FIT_VARIANT", "").split(",") if name]


# "ddp", "zero1", "fsdp", "hsdp", "tp", and "" for one GPU; ranks of a group of hsdp and tp; whether
# what was gathered is dropped. A variant of a plan goes before what was asked for.
def way():
    for name in NAMES:
        kind, _, more = name.partition(":")
        if kind in ("fsdp", "hsdp", "tp"):  # of ZeRO-1 the tracer keeps what this rank steps
            return kind, int(more) if more.isdigit() else 0, more != "no-reshard"
    return SPEC.get("strategy") or "", SPEC.get("degree") or 0, bool(SPEC.get("reshard"))


HOW, DEGREE, RESHARD = way()
OFFLOAD = "offload" in NAMES
WORLD = int(os.environ.get("WORLD_SIZE") or 1)
# Parameters are shards: in `tp` only where there are several groups of it.
SHARDED = HOW in ("fsdp", "hsdp") or (HOW == "tp" and WORLD > DEGREE)
# FSDP casts what it gathers; autocast then has nothing to do.
CAST = DTYPES.get(SPEC["autocast"]) if SHARDED else None
ARITHMETIC = None if SHARDED else AUTOCAST


def join_group():
    if not HOW:
        return
    if DEGREE and WORLD % DEGREE:
        stop("ranks", "%d / %d" % (WORLD, DEGREE))
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK") or 0))
    torch.distributed.init_process_group("nccl")
    tell("strategy", SPEC["strategy_asked"])


# Onto the GPU, as a rank has it there. `model`: what is called.
def dealt_out(model):
    if HOW in ("ddp", "zero1"):
        if NAMES:
            tell("tp_can", " ".join(map(str, degrees_of(model))))
        model.cuda()
        device = torch.cuda.current_device()
        return torch.nn.parallel.DistributedDataParallel(model, device_ids=[device])
    if HOW == "tp":
        split_layers(model)
    if SHARDED:
        return shard(model)
    return model.cuda()


def mesh_of():
    from torch.distributed.device_mesh import init_device_mesh

    if not DEGREE:
        return init_device_mesh("cuda", (WORLD,))
    names = ("shard", "tp") if HOW == "tp" else ("replicate", "shard")
    return init_device_mesh("cuda", (WORLD // DEGREE, DEGREE), mesh_dim_names=names)


MESH = []


def mesh():
    if not MESH:
        MESH.append(mesh_of())
    return MESH[0]


# Block by block it comes from the processor's memory and is dealt out, so that no rank ever holds
# it whole.
def shard(model):
    try:
        from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
    except ImportError:
        stop("missing", "torch.distributed.fsdp.fully_shard (torch 2.6)")
    wanted = {
        "mesh": mesh()["shard"] if HOW == "tp" else mesh(),
        "reshard_after_forward": RESHARD,
    }
    if CAST is not None:
        wanted["mp_policy"] = MixedPrecisionPolicy(param_dtype=CAST, reduce_dtype=torch.float32)
    if OFFLOAD:
        wanted["offload_policy"] = CPUOffloadPolicy()
    blocks = repeated_blocks(model)
    for block in blocks:
        fully_shard(block, **wanted)
    kinds = sorted({type(block).__name__.replace("FSDP", "", 1) for block in blocks})
    note("wrapped", "%d: %s" % (len(blocks), ", ".join(kinds)))
    return fully_shard(model, **wanted)


# The layers of a transformer: lists of modules of one kind that have modules of their own.
def repeated_blocks(module):
    children = list(module.children())
    if isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)) and len(children) > 1:
        if len({type(child) for child in children}) == 1 and all(
            next(child.children(), None) is not None for child in children
        ):
            return children
    return [block for child in children for block in repeated_blocks(child)]


# The plan that the class has in transformers, or why its layers cannot be split so.
def plan_of(model, degree):
    plan = dict(getattr(model, "_tp_plan", None) or {})
    if not plan:
        return {}, type(model).__name__
    for style in plan.values():
        if style not in STYLES:
            return {}, "%s (%s)" % (type(model).__name__, style)
    text = model.config.get_text_config() if hasattr(model.config, "get_text_config") else None
    for name in ("num_attention_heads", "num_key_value_heads"):
        heads = getattr(text, name, None)
        if heads and heads % degree:
            return {}, "%s = %d" % (name, heads)
    for path, module, (by, whole) in planned(model, plan):
        width = module.in_features if by == "rows" else module.out_features
        if width % degree and not whole:
            return {}, "%s = %d" % (path.split(".")[-1], width)
    return plan, ""


def planned(model, plan):
    for path, module in model.named_modules():
        for pattern, style in plan.items():
            if isinstance(module, torch.nn.Linear) and fnmatch.fnmatchcase(path, pattern):
                yield path, module, STYLES[style]


# Numbers of ranks that can share the layers.
def degrees_of(model):
    local = int(os.environ.get("LOCAL_WORLD_SIZE") or WORLD)
    if SPEC["train"] != "full" or SPEC["library"] != "transformers":
        return []
    return [k for k in (2, 4, 8) if k <= local and WORLD % k == 0 and plan_of(model, k)[0]]


# Those that DTensor runs: by rows or columns, and whether the whole result is wanted.
STYLES = {
    "colwise": ("columns", False),
    "rowwise": ("rows", False),
    "colwise_rep": ("columns", True),
    "colwise_gather_output": ("columns", True),
}


def split_layers(model):
    from torch.distributed.tensor import Replicate, parallel

    plan, why_not = plan_of(model, DEGREE)
    if why_not:
        stop("tp", why_not)
    split = {}
    for path, _, (by, whole) in planned(model, plan):
        if by == "rows":
            split[path] = parallel.RowwiseParallel()
        else:
            layout = {"output_layouts": Replicate()} if whole else {}
            split[path] = parallel.ColwiseParallel(**layout)
    if not split:
        stop("tp", type(model).__name__)
    parallel.parallelize_module(model, mesh()["tp"], split)
    model.cuda()
    note("split", "%d: %s" % (len(split), ", ".join(sorted({p.split(".")[-1] for p in split}))))


# Of one kernel all parameters are dealt out in the same way.
def groups_of(parameters):
    groups = {}
    for parameter in parameters:
        dealt = getattr(parameter, "device_mesh", None)
        groups.setdefault(None if dealt is None else str(dealt), []).append(parameter)
    return [{"params": group} for group in groups.values()]


# What this rank holds of it.
def own_part(parameter):
    return getattr(parameter, "_local_tensor", parameter)
