# SPDX-License-Identifier: Apache-2.0
"""How the watch over the optimizers begins, and the sitecustomize that it hides."""

import os

from cufit_hidden_site import leave_path, run_hidden

from .messages import said, say
from .spiller import Spiller


def entry(as_program):
    return begin


def begin():
    try:
        watch()
    except ImportError:  # of the user's own sitecustomize
        raise
    except Exception as error:
        say("OFF", why=said(error))


def watch():
    leave_path()
    if os.environ.get("CUFIT_SPILL_LIBRARY"):
        mode = os.environ.get("CUFIT_SPILL_OPTIMIZER", "")
        Spiller(mode, os.environ["CUFIT_SPILL_LIBRARY"]).wait()
    run_hidden()
