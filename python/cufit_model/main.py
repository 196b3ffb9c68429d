# SPDX-License-Identifier: Apache-2.0
"""How the program begins."""

import os
import sys

OFFLINE = "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "DIFFUSERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY"


def entry(as_program):
    for name in OFFLINE:
        os.environ[name] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "0"
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != own]
    try:
        import torch  # noqa: F401
    except ImportError:
        sys.stderr.write("cufit: no torch in %s\n" % sys.executable)
        sys.exit(4)
    from .diffusion import train_diffusion
    from .language import train_language
    from .ranks import join_group
    from .spec import SPEC, note

    def run():
        for kind, detail in SPEC["assumed"]:
            note(kind, detail)
        join_group()
        if SPEC["library"] == "diffusers":
            train_diffusion()
        else:
            train_language()

    return run
