# SPDX-License-Identifier: Apache-2.0
"""One rank of many: how `--strategy` deals a model out. The group is a pretended one, as that of
any program under the tracer."""

import fnmatch
import os

import torch

from .spec import AUTOCAST, DTYPES, SPEC, note, stop, tell

HOW = SPEC.get("strategy") or ""  # "ddp", "zero1", "fsdp", "hsdp", "tp"; "": one GPU
DEGREE = SPEC.get("degree") or 0  # ranks of a group of hsdp and tp
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
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    except ImportError:
        stop("missing", "torch.distributed.fsdp.fully_shard (torch 2.6)")
    wanted = {
        "mesh": mesh()["shard"] if HOW == "tp" else mesh(),
        "reshard_after_forward": bool(SPEC["reshard"]),
    }
    if CAST is not None:
        wanted["mp_policy"] = MixedPrecisionPolicy(param_dtype=CAST, reduce_dtype=torch.float32)
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


# By the plan that the class has in transformers, of which DTensor runs these styles.
def split_layers(model):
    from torch.distributed.tensor import Replicate, parallel

    plan = dict(getattr(model, "_tp_plan", None) or {})
    styles = {
        "colwise": parallel.ColwiseParallel,
        "rowwise": parallel.RowwiseParallel,
        "colwise_rep": lambda: parallel.ColwiseParallel(output_layouts=Replicate()),
        "colwise_gather_output": lambda: parallel.ColwiseParallel(output_layouts=Replicate()),
    }
    if not plan:
        stop("tp", type(model).__name__)
    for style in plan.values():
        if style not in styles:
            stop("tp", "%s (%s)" % (type(model).__name__, style))
    text = model.config.get_text_config() if hasattr(model.config, "get_text_config") else None
    for name in ("num_attention_heads", "num_key_value_heads"):
        heads = getattr(text, name, None)
        if heads and heads % DEGREE:
            stop("tp", "%s = %d" % (name, heads))
    split = {}
    for path, module in model.named_modules():
        for pattern, style in plan.items():
            if isinstance(module, torch.nn.Linear) and fnmatch.fnmatchcase(path, pattern):
                split[path] = styles[style]()
    if not split:
        stop("tp", type(model).__name__)
    whole = mesh()
    parallel.parallelize_module(model, whole["tp"], split)
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
