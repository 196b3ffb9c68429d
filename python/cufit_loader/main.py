# SPDX-License-Identifier: Apache-2.0
"""How the watch over the program's loaders begins, and the sitecustomize that it hides."""

import os

from cufit_hidden_site import leave_path, run_hidden

from .answer import Answer
from .probe import Probe


def entry(as_program):
    return begin


def begin():
    out = os.environ.get("CUFIT_LOADER_OUT")
    if out:
        leave_path()
        seconds = float(os.environ.get("CUFIT_LOADER_SECONDS", "60"))
        words = os.environ.get("CUFIT_LOADER_WORKERS", "")
        counts = [int(word) for word in words.split(",") if word]
        cpus = int(os.environ.get("CUFIT_LOADER_CPUS") or 0)
        leads = os.environ.get("RANK", "0") == "0"
        Probe(Answer(out), seconds, counts, cpus, leads).wait()
    run_hidden()
