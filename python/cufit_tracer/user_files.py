# SPDX-License-Identifier: Apache-2.0
"""Which files are the user's own: lines of these are named, those of libraries and of the tracer
are not."""

import os
import sys
import tempfile


# The folder in which the tracer lies.
OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


LIBRARIES = tuple(
    {
        os.path.dirname(os.path.abspath(os.__file__)) + os.sep,
        os.path.join(sys.prefix, "bin") + os.sep,
        os.path.join(sys.base_prefix, "bin") + os.sep,
        OWN + os.sep,
    }
)


# `pip install --target` and the modules of clusters: packages on PYTHONPATH are no files of the
# user's, unless the program lies there.
def packages_on_path():
    program = os.path.dirname(os.path.abspath(sys.argv[0] if getattr(sys, "argv", None) else ""))
    for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep)[:64]:
        own = (program + os.sep, os.getcwd() + os.sep)
        if not folder or any(place.startswith(os.path.abspath(folder) + os.sep) for place in own):
            continue
        try:
            if any(name.endswith(".dist-info") for name in os.listdir(folder)):
                yield os.path.abspath(folder) + os.sep
        except OSError:
            pass


LIBRARIES += tuple(packages_on_path())


def add_library(folder):
    global LIBRARIES
    LIBRARIES += (folder + os.sep,)


# Libraries write code into the folder for temporary files (torch_geometric), under another name in
# each run.
def generated(path):
    program = os.path.abspath(sys.argv[0]) if getattr(sys, "argv", None) else ""
    return os.path.dirname(path) == tempfile.gettempdir() != os.path.dirname(program)


# From here, or from where the program lies; whole where it is in neither.
def shown_path(path):
    here = os.path.relpath(path)
    if not here.startswith(os.pardir + os.sep) or not getattr(sys, "argv", None):
        return here
    there = os.path.relpath(path, os.path.dirname(os.path.abspath(sys.argv[0])))
    return path if there.startswith(os.pardir + os.sep) else there


# Its path; empty for what is installed.
def users_file(name):
    path = os.path.abspath(name)
    if (
        name.startswith("<")
        or path.startswith(LIBRARIES)
        or "/site-packages/" in path
        or "/dist-packages/" in path
        or generated(path)
    ):
        return ""
    return shown_path(path)


# The script's name, or the package's: traces of two programs are told apart by it.
def program_name():
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    if not isinstance(path, str) or os.path.abspath(path).startswith(OWN + os.sep):
        return ""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.basename(folder), name) if name == "__main__.py" else name


# Of the user's files, the first few.
def lines_that_evaluate():
    found = []
    for module in list(sys.modules.values())[:5000]:
        file = getattr(module, "__file__", None) or (
            sys.argv[0] if getattr(module, "__name__", "") == "__main__" else None
        )
        own = users_file(file) if isinstance(file, str) and file.endswith(".py") else ""
        if own and len(found) < 4:
            try:
                with open(file, encoding="utf-8", errors="replace") as text:
                    lines = text.readlines(1 << 20)
            except OSError:
                continue
            found += [
                "%s:%d" % (own, number)
                for number, line in enumerate(lines, 1)
                if ".eval()" in line.partition("#")[0]
            ]
    return found[:4]


# Whose code raised an error: what PyTorch and the tracer raise may come of the trace.
def raised_in(trace):
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    name = trace.tb_frame.f_code.co_filename if trace is not None else ""
    if users_file(name):
        return "program"
    torch = os.path.dirname(getattr(sys.modules.get("torch"), "__file__", None) or "") or OWN
    path = os.path.abspath(name)
    return "torch" if path.startswith((OWN + os.sep, torch + os.sep)) else "library"


# Of the user's own code, where an error came from.
def innermost_line(trace):
    place = ""
    while trace is not None:
        own = users_file(trace.tb_frame.f_code.co_filename)
        if own:
            place = "%s:%d" % (own, trace.tb_lineno)
        trace = trace.tb_next
    return place
