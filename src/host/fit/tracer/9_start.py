# ---- start ------------------------------------------------------------------------------------------------------------------

def start():
    wanted = settings()
    if not wanted["OUT"]:
        return
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]
    tracers = []

    def imported(torch):
        if tracers:
            return
        tracer = Tracer(torch, wanted)
        tracers.append(tracer)
        try:
            if tracer.version < (2, 4):
                raise RuntimeError("it needs torch 2.4 or later")
            tracer.install()
        except Exception as error:
            if os.path.exists(wanted["OUT"]):
                os._exit(3)
            tracer.file.fact("torch", torch.__version__)
            tracer.file.note("error", "the tracer does not work with torch %s: %s: %s" % (torch.__version__, type(error).__name__, error), "")
            tracer.file.end(FAILED)
            sys.stderr.write("cufit: the tracer does not work with torch %s: %s: %s\n" % (torch.__version__, type(error).__name__, error))
            sys.stderr.flush()
            os._exit(3)
        failed = sys.excepthook

        def hook(kind, error, trace):
            last = trace
            place = ""
            while last is not None:
                own = users_file(last.tb_frame.f_code.co_filename)
                if own:
                    place = "%s:%d" % (own, last.tb_lineno)
                last = last.tb_next
            if tracer.after.began:
                if not tracer.after.left:
                    tracer.file.note("assumed", "what follows the traced steps was not seen to its end: %s: %s" % (kind.__name__, str(error)[:200]), place)
                tracer.after.leave()
            if tracer.ending() == FAILED:
                tracer.file.note("error", "%s: %s" % (kind.__name__, error) if str(error) else kind.__name__, place)
            tracer.file.end(tracer.ending())
            failed(kind, error, trace)

        sys.excepthook = hook
        import atexit
        atexit.register(lambda: tracer.after.leave() if tracer.after.began else tracer.file.end(ENDED))

    shim = os.path.join(here, "no_accelerator.so")
    if os.path.exists(shim):
        import ctypes

        ctypes.CDLL(shim, mode=ctypes.RTLD_GLOBAL)
    _cufit_on_import("torch", imported)
    _cufit_on_import("safetensors.torch", lambda module: tracers and patch_safetensors(tracers[0], module))
    watch(wanted, tracers)
    sys._cufit_tracers = tracers


# `make_step(batch)`, with --seq `make_step(batch, seq)`, of the user's module gives a callable that does one training step.
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


if __name__ == "__main__" and sys.argv[1:2] == ["--cudnn"]:
    answer_for_cudnn(sys.argv[2])
elif __name__ == "__main__":
    run_function()
else:
    start()
