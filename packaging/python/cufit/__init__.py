# SPDX-License-Identifier: Apache-2.0
"""cufit from Python: its answers as dicts, and two commands for notebooks (`%load_ext cufit`).

>>> import cufit
>>> cufit.doctor()["verdict"]
'works'
>>> cufit.explain("Failed to initialize NVML: Driver/library version mismatch")["causes"][0]["id"]
'driver_lib_mismatch'

Options of the command line are keywords: `--fail-on never` is `fail_on="never"`, a switch is `True`, an option that may
be given several times takes a list. The dicts are what `--json` prints; docs/schemas of the project describes them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess

from ._program import Error, program

__all__ = ["Error", "doctor", "explain", "fit", "program", "run"]
__version__ = "@VERSION@"

# What a training takes to write its last checkpoint is not known; cufit itself ends at once.
_SECONDS_TO_END = 10


def _words(options: dict) -> list[str]:
    words = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                words.append(flag)
            elif one is not None and one is not False:
                words += [flag, os.fspath(one) if isinstance(one, os.PathLike) else str(one)]
    return words


def run(*arguments: str, input: str | None = None) -> subprocess.CompletedProcess:
    """Run cufit with these arguments; output is text. Raises nothing for its exit code.

    Without `input` it reads nothing. An interrupt (Ctrl-C) is passed on, so that cufit can end what it started.
    """
    if input is not None and not isinstance(input, str):
        raise TypeError(f"input is a text, not {type(input).__name__}")
    command = [program(), *arguments]
    stdin = subprocess.DEVNULL if input is None else subprocess.PIPE
    pipe = subprocess.PIPE
    try:
        child = subprocess.Popen(command, stdin=stdin, stdout=pipe, stderr=pipe, encoding="utf-8", errors="replace")
    except OSError as error:
        raise Error(f"{command[0]}: {error.strerror}", 3) from error
    with child:
        try:
            out, said = child.communicate(input)
        except BaseException:
            _end(child)
            raise
    return subprocess.CompletedProcess(command, child.returncode, out, said)


def _end(child: subprocess.Popen) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if child.poll() is not None:
            return
        child.send_signal(number)
        try:
            child.wait(timeout=_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            pass


def _answer(arguments: list[str], input: str | None = None) -> dict:
    done = run(*arguments, input=input)
    # 0 and 1 are answers, the second one with findings; 2 and more say why there is none.
    if done.returncode not in (0, 1) or not done.stdout.strip():
        raise Error(done.stderr.strip() or f"cufit ended with {done.returncode}", done.returncode)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError as error:
        raise Error(f"cufit {arguments[0]} printed no JSON with these options", 2) from error


def doctor(**options) -> dict:
    """Will PyTorch run on each GPU of this machine? Schema cufit.doctor/1.

    doctor(env="/path/of/venv"), doctor(gpu="RTX 5090", driver="570"), doctor(from_="machine.json")
    """
    return _answer(["doctor", "--json", *_words(options)])


def explain(text: str, **options) -> dict:
    """What is behind an error text? Schema cufit.explain/1. explain(text, here=True) also looks at this machine."""
    if not isinstance(text, str):
        raise TypeError(f"explain() takes a text, not {type(text).__name__}")
    return _answer(["explain", "--json", *_words(options), "-"], input=text)


def fit(*command: str, **options) -> dict:
    """How much memory does a training program take, and which GPUs does it fit? Schema cufit.fit/1.

    fit("python", "train.py", gpu="RTX 4090"); fit(events=["a.events"], gpu="RTX 4090")
    """
    return _answer(["fit", "--json", *_words(options), *(["--", *command] if command else [])])


def load_ipython_extension(shell) -> None:
    from ._notebook import register

    register(shell)
