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
        # Of a job of several processes the first is looked at.
        if os.environ.get("RANK", "0") == "0":
            seconds = float(os.environ.get("CUFIT_LOADER_SECONDS", "60"))
            words = os.environ.get("CUFIT_LOADER_WORKERS", "")
            counts = [int(word) for word in words.split(",") if word]
            Probe(Answer(out), seconds, counts).wait()
    run_hidden()
