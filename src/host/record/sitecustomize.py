# SPDX-License-Identifier: Apache-2.0
"""Runs at the start of every Python below `cufit mem record`: switches torch's memory history on once CUDA is initialised,
and writes a snapshot when memory runs out, on SIGUSR1, or at the end. Never stops or changes the program it runs in: what
fails here is said on stderr and the program goes on. Python 3.6 and later, torch 2.0 and later."""
import os
import sys


def _cufit():
    settings = {key: os.environ.get("CUFIT_RECORD_" + key) for key in ("STATE", "OUT", "EVENTS", "STACKS", "EXIT")}
    if not settings["STATE"]:
        return
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]
    shown = {"oom": 0, "signal": 0, "exit": 0}
    recording = []  # the torch module, once recording began

    # cufit gives the sentences, in the user's language. Bytes: a Python of the C locale before 3.7 has no other letters.
    def say(name, **values):
        text = os.environ.get("CUFIT_RECORD_SAY_" + name, name)
        for key, value in values.items():
            text = text.replace("{%s}" % key, str(value))
        line = "cufit: %s\n" % text
        sys.stderr.flush()
        try:
            sys.stderr.buffer.write(os.fsencode(line))
        except (AttributeError, UnicodeError):  # the program has put something else there
            sys.stderr.write(line)
        sys.stderr.flush()

    # One line of a file of this process; `cufit` reads them at the end.
    def note(kind, text):
        try:
            with open(os.path.join(settings["STATE"], str(os.getpid())), "a") as file:
                file.write("%s %s\n" % (kind, text))
        except OSError:
            pass

    def dump(why):
        shown[why] += 1
        rank = os.environ.get("RANK")
        name = "cufit-mem%s-%d-%s%s.pickle" % (
            "" if rank is None else "-rank" + rank, os.getpid(), why, "" if shown[why] == 1 else "-%d" % shown[why])
        path = os.path.join(settings["OUT"], name)
        try:
            recording[0].cuda.memory._dump_snapshot(path + ".part")
            os.replace(path + ".part", path)
        except Exception as error:
            note("unwritten", "%s: %s" % (type(error).__name__, error))
            return
        note("snapshot", path)
        say("WROTE", path=path)

    most_at_oom = 3  # a program that catches and retries would fill the disk

    def at_oom(device, alloc, device_alloc, device_free):
        if shown["oom"] < most_at_oom:
            say("OOM", device=device, bytes=alloc)
            dump("oom")

    def at_signal(number, frame):
        if recording:
            dump("signal")
        else:
            say("NOT_YET", pid=os.getpid())

    def begin(torch):
        if recording:
            return
        events = int(settings["EVENTS"])
        try:
            try:
                torch.cuda.memory._record_memory_history(enabled="all", context="all", stacks=settings["STACKS"], max_entries=events)
            except TypeError:  # 2.0
                torch.cuda.memory._record_memory_history(
                    True, record_context=True, trace_alloc_max_entries=events, trace_alloc_record_context=True)
            torch._C._cuda_attach_out_of_memory_observer(at_oom)
        except Exception as error:
            say("FAILED", why="%s: %s" % (type(error).__name__, error))
            note("failed", "%s: %s" % (type(error).__name__, error))
            return
        recording.append(torch)
        note("recording", torch.__version__)
        if settings["EXIT"]:
            import atexit

            atexit.register(lambda: dump("exit"))

    def imported(torch):
        # Before CUDA is initialised there is no allocator whose history could be switched on.
        try:
            torch.cuda._lazy_call(lambda: begin(torch))
        except Exception as error:
            say("FAILED", why="%s: %s" % (type(error).__name__, error))

    _cufit_on_import("torch", imported)

    import signal

    try:
        if signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL:
            signal.signal(signal.SIGUSR1, at_signal)
    except ValueError:  # not the main thread
        pass
    note("python", sys.version.split()[0])

    import importlib.machinery
    import importlib.util

    # The one that this file hides.
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


try:
    _cufit()
except ImportError:
    raise
except Exception as _error:
    _text = os.environ.get("CUFIT_RECORD_SAY_OFF", "OFF {why}")
    sys.stderr.write("cufit: %s\n" % _text.replace("{why}", "%s: %s" % (type(_error).__name__, _error)))
del _cufit, _cufit_on_import
