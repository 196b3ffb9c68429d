# SPDX-License-Identifier: Apache-2.0
"""A small snapshot of the shape that `logits.append(model(ids))` leaves: two training steps, an evaluation whose 20 outputs
stay, and the torch.cat that finds no memory. With a second argument, the process's limit in bytes as `mem record` writes it."""
import pickle
import sys

MIB = 1 << 20
events, address = [], [1 << 40]


def frames(*places):
    return [{"name": name, "filename": file, "line": line} for file, name, line in places]


SCRIPT = "/home/u/train.py"
TORCH = "/env/lib/python3.12/site-packages/torch/"
MODULE = (TORCH + "nn/modules/module.py", "_call_impl", 1776)
SETUP = frames((TORCH + "nn/modules/module.py", "_apply", 900), (SCRIPT, "<module>", 5))
TRAIN = frames((TORCH + "nn/modules/linear.py", "forward", 116), MODULE, (SCRIPT, "train", 10), (SCRIPT, "<module>", 30))
STEP = frames((TORCH + "optim/adamw.py", "step", 220), (SCRIPT, "train", 12), (SCRIPT, "<module>", 30))
EVAL = frames((TORCH + "nn/modules/linear.py", "forward", 116), MODULE, (SCRIPT, "evaluate", 18), (SCRIPT, "<module>", 31))
INNER = frames((TORCH + "nn/functional.py", "gelu", 20), MODULE, (SCRIPT, "evaluate", 18), (SCRIPT, "<module>", 31))
CAT = frames((SCRIPT, "evaluate", 20), (SCRIPT, "<module>", 31))


def event(action, at, size, stack):
    events.append({"action": action, "addr": at, "size": size, "stream": 0, "frames": stack, "time_us": len(events)})


def alloc(size, stack):
    at = address[0]
    address[0] += size
    event("segment_alloc", at, size, stack)
    event("alloc", at, size, stack)
    return at


def free(at, size, stack):
    event("free_requested", at, size, stack)
    event("free_completed", at, size, stack)
    event("segment_free", at, size, stack)


alloc(40 * MIB, SETUP)
for step in range(2):
    kept = [alloc(20 * MIB, TRAIN) for _ in range(4)]
    gradient = alloc(40 * MIB, [])
    for at in kept:
        free(at, 20 * MIB, [])
    if step == 0:
        alloc(40 * MIB, STEP), alloc(40 * MIB, STEP)
    work = alloc(40 * MIB, STEP)
    free(work, 40 * MIB, STEP)
    free(gradient, 40 * MIB, STEP)
for _ in range(20):
    inner = [alloc(20 * MIB, INNER) for _ in range(3)]
    alloc(40 * MIB, EVAL)
    for at in inner:
        free(at, 20 * MIB, EVAL)
events.append({"action": "oom", "addr": 60 << 30, "size": 800 * MIB, "stream": 0, "frames": CAT, "time_us": len(events), "device_free": 60 << 30})
live, sizes = {}, {}
for one in events:
    if one["action"] == "alloc":
        live[one["addr"]] = one
    if one["action"] == "free_requested":
        del live[one["addr"]]
segments = [{"device": 0, "address": at, "total_size": one["size"], "allocated_size": one["size"], "active_size": one["size"],
             "requested_size": one["size"], "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False,
             "frames": [], "blocks": [{"address": at, "size": one["size"], "requested_size": one["size"],
                                       "state": "active_allocated", "frames": one["frames"]}]} for at, one in live.items()]
snapshot = {"segments": segments, "device_traces": [events]}
if len(sys.argv) > 2:
    snapshot["cufit_limits"] = {"0": int(sys.argv[2])}
with open(sys.argv[1], "wb") as file:
    pickle.dump(snapshot, file)
