# SPDX-License-Identifier: Apache-2.0
"""What `cufit fit MODEL --train ...` trains: the model that a checkpoint's headers and config.json describe, built without its
weights by the installed transformers or diffusers, and a plain training loop around it. Runs under the tracer like any other
program. CUFIT_FIT_MODEL says what to build (src/fit/model_spec.h); nothing is downloaded, no code of the model's folder runs."""
import json
import os
import sys

for _name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "DIFFUSERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY", "TOKENIZERS_PARALLELISM"):
    os.environ[_name] = "0" if _name == "TOKENIZERS_PARALLELISM" else "1"
sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != os.path.dirname(os.path.abspath(__file__))]
SPEC = json.loads(os.environ["CUFIT_FIT_MODEL"])
BATCH = int(os.environ["CUFIT_FIT_BATCH"])
STEPS = int(os.environ.get("CUFIT_FIT_STEPS") or 3)


def note(kind, detail=""):
    for tracer in getattr(sys, "_cufit_tracers", ()):
        tracer.file.note("model_" + kind, str(detail), "")


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
        stop("missing", package if getattr(error, "name", None) in (package, None) else "%s (%s)" % (package, error))


try:
    import torch
except ImportError:
    sys.stderr.write("cufit: no torch in %s\n" % sys.executable)
    sys.exit(4)

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
WEIGHTS = DTYPES[SPEC["dtype"]]
AUTOCAST = DTYPES.get(SPEC["autocast"])


def count(module):
    return sum(p.numel() for p in module.parameters())
