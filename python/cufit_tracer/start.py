# SPDX-License-Identifier: Apache-2.0
"""How the tracer begins: it waits for torch."""

import os
import sys

from cufit_import_hook import on_import

from . import function_steps  # noqa: F401  so that all of the tracer is there from the start
from .event_file import ENDED, FAILED
from .program.launchers import answer_launchers, place_alone
from .ops.xformers import patch_xformers
from .program.saving import patch_safetensors
from .settings import settings
from .steps.unfollowed import NOT_FOLLOWED, described
from .tracer import Tracer
from .user_files import OWN, innermost_line, raised_in
from .watch import watch


def start():
    wanted = settings()
    if not wanted["OUT"]:
        return
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != OWN]
    tracers = []

    def imported(torch):
        if not tracers:
            tracer = Tracer(torch, wanted)
            tracers.append(tracer)
            install(tracer)

    shim = os.path.join(OWN, "no_accelerator.so")
    if os.path.exists(shim):
        import ctypes

        ctypes.CDLL(shim, mode=ctypes.RTLD_GLOBAL)
    place_alone()
    answer_launchers()
    on_import("torch", imported)
    on_import("safetensors.torch", lambda module: tracers and patch_safetensors(tracers[0], module))
    on_import("xformers.ops", lambda module: tracers and patch_xformers(tracers[0], module))
    watch(wanted, tracers)
    sys._cufit_tracers = tracers


def install(tracer):
    try:
        if tracer.version < (2, 4):
            raise RuntimeError("it needs torch 2.4 or later")
        tracer.install()
    except Exception as error:
        give_up(tracer, error)
    hook_exceptions(tracer)
    import atexit
    import gc

    gc.freeze()  # programs that collect garbage often need not look through all of torch

    atexit.register(lambda: tracer.after.leave() if tracer.after.began else tracer.file.end(ENDED))


def give_up(tracer, error):
    if os.path.exists(tracer.wanted["OUT"]):
        os._exit(3)
    version = tracer.torch.__version__
    said = "the tracer does not work with torch %s: %s: %s" % (version, type(error).__name__, error)
    tracer.file.fact("torch", version)
    tracer.file.note("error", said, "")
    tracer.file.end(FAILED)
    sys.stderr.write("cufit: %s\n" % said)
    sys.stderr.flush()
    os._exit(3)


def hook_exceptions(tracer):
    failed = sys.excepthook

    def hook(kind, error, trace):
        file, place = tracer.file, innermost_line(trace)
        if tracer.after.began:
            if not tracer.after.left:
                file.note("assumed", NOT_FOLLOWED + described(error), place)
            tracer.after.leave()
        if tracer.ending() == FAILED:
            file.fact("raised_in", raised_in(trace))
            file.note("error", described(error, 4000), place)
        file.end(tracer.ending())
        failed(kind, error, trace)

    sys.excepthook = hook
