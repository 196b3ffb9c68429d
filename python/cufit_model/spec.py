# SPDX-License-Identifier: Apache-2.0
"""What is to be built, and notes in the event file."""

import json
import os
import sys

import torch

SPEC = json.loads(os.environ["CUFIT_FIT_MODEL"])
BATCH = int(os.environ["CUFIT_FIT_BATCH"])
STEPS = int(os.environ.get("CUFIT_FIT_STEPS") or 3)
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
WEIGHTS = DTYPES[SPEC["dtype"]]
AUTOCAST = DTYPES.get(SPEC["autocast"])


def note(kind, detail=""):
    for tracer in getattr(sys, "_cufit_tracers", ()):
        tracer.file.note("model_" + kind, str(detail), "")


def tell(key, value):
    for tracer in getattr(sys, "_cufit_tracers", ()):
        tracer.file.fact(key, value)


# The reason is a note, for the report to put into words.
def stop(kind, detail=""):
    note("stop_" + kind, detail)
    for tracer in getattr(sys, "_cufit_tracers", ()):
        tracer.file.end(2)
    sys.stderr.write("cufit: %s: %s\n" % (kind, detail))
    sys.stderr.flush()
    os._exit(4)


def needed(package):
    import importlib

    try:
        return importlib.import_module(package)
    except ImportError as error:
        itself = getattr(error, "name", None) in (package, None)
        stop("missing", package if itself else "%s (%s)" % (package, error))
