# SPDX-License-Identifier: Apache-2.0
"""How the watch over the optimizers begins, and the sitecustomize that it hides."""

import os
import sys

from .messages import say_off
from .spiller import Spiller


def entry(as_program):
    return begin


def begin():
    try:
        watch()
    except ImportError:  # of the user's own sitecustomize
        raise
    except Exception as error:
        say_off(error)


def watch():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]
    if os.environ.get("CUFIT_SPILL_LIBRARY"):
        mode = os.environ.get("CUFIT_SPILL_OPTIMIZER", "")
        Spiller(mode, os.environ["CUFIT_SPILL_LIBRARY"]).wait()
    import importlib.machinery
    import importlib.util

    # The one that this file hides.
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)
