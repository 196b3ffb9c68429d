# SPDX-License-Identifier: Apache-2.0
"""How the recording begins, and the sitecustomize that it hides."""

import os
import sys

from .messages import say_off
from .recorder import Recorder


def entry(as_program):
    return begin


def begin():
    try:
        record()
    except ImportError:  # of the user's own sitecustomize
        raise
    except Exception as error:
        say_off(error)


def record():
    wanted = {
        key: os.environ.get("CUFIT_RECORD_" + key)
        for key in ("STATE", "OUT", "EVENTS", "STACKS", "EXIT")
    }
    if not wanted["STATE"]:
        return
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]
    Recorder(wanted).wait()
    import importlib.machinery
    import importlib.util

    # The one that this file hides.
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)
