# SPDX-License-Identifier: Apache-2.0
"""`cufit fit --function MODULE:NAME`: steps of a function of the user's."""

import os
import sys

from .settings import settings


# `make_step(batch)`, with --seq `make_step(batch, seq)`, of the user's module gives a callable that
# does one training step.
def run_function():
    wanted = settings()
    name, _, function = wanted["FUNCTION"].partition(":")
    sys.path.insert(0, os.getcwd())
    import torch  # noqa: F401  the tracer is put in place with it
    import importlib

    tracer = sys._cufit_tracers[0]
    tracer.by_function = True
    tracer.file.fact("batch_from", "function")
    make = getattr(importlib.import_module(name), function)
    step = make(wanted["BATCH"], wanted["SEQ"]) if wanted["SEQ"] else make(wanted["BATCH"])
    while tracer.steps < tracer.wanted["STEPS"]:
        tracer.step_begins()
        step()
        tracer.step_ends()
    if tracer.variant is not None:  # one more over two micro-batches
        step()
        step()
        tracer.step_ends()
