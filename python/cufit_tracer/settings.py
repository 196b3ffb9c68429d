# SPDX-License-Identifier: Apache-2.0
"""What `cufit fit` asks of the tracer, in variables of the environment."""

import os


def settings():
    keys = (
        "OUT",
        "BATCH",
        "STEPS",
        "FUNCTION",
        "SCRATCH",
        "GPU",
        "VARIANT",
        "CUDNN",
        "SEQ",
        "DEADLINE",
        "IDLE",
        "PROGRESS",
        "DEVICE",
        "MOST_STEPS",
        "BATCH_WAS",
        "SENT",
    )
    value = {key: os.environ.get("CUFIT_FIT_" + key) for key in keys}
    value["BATCH"] = int(value["BATCH"]) if value["BATCH"] else None
    value["BATCH_WAS"] = int(value["BATCH_WAS"]) if value["BATCH_WAS"] else None
    value["SEQ"] = int(value["SEQ"]) if value["SEQ"] else None
    value["STEPS"] = int(value["STEPS"] or 3)
    value["UNALIKE_STEPS"] = int(value["MOST_STEPS"] or max(value["STEPS"], 48))
    value["MOST_STEPS"] = int(value["MOST_STEPS"] or max(value["STEPS"], 12))
    name, capability, total = (value["GPU"] or "NVIDIA H200,9.0,150110011392").rsplit(",", 2)
    value["GPU"] = name, tuple(int(part) for part in capability.split(".")), int(total)
    return value
