# SPDX-License-Identifier: Apache-2.0
"""The user's own sitecustomize, which an embedded program of that name hides. Python 3.6 and
later."""

import os
import sys


def leave_path():
    """This folder off sys.path: what is looked for from now on is the user's."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]


def run_hidden():
    import importlib.machinery
    import importlib.util

    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)
