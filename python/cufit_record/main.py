# SPDX-License-Identifier: Apache-2.0
"""How the recording begins, and the sitecustomize that it hides."""

import os

from cufit_hidden_site import leave_path, run_hidden

from .messages import said, say
from .recorder import Recorder


def entry(as_program):
    return begin


def begin():
    try:
        record()
    except ImportError:  # of the user's own sitecustomize
        raise
    except Exception as error:
        say("OFF", why=said(error))


def record():
    wanted = {
        key: os.environ.get("CUFIT_RECORD_" + key)
        for key in ("STATE", "OUT", "EVENTS", "STACKS", "EXIT")
    }
    if not wanted["STATE"]:
        return
    leave_path()
    Recorder(wanted).wait()
    run_hidden()
