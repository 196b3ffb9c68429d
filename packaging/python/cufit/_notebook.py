# SPDX-License-Identifier: Apache-2.0
"""`%doctor` and `%explain` of IPython and Jupyter."""

from __future__ import annotations

import html
import os
import shlex
import sys
import tempfile
import traceback

from . import run


class _Shown:
    """Text in a terminal, a page or plain text in a notebook."""

    def __init__(self, text: str, page: str | None = None):
        self.text = text
        self.page = page

    def _repr_pretty_(self, printer, cycle):
        printer.text(self.text)

    def _repr_html_(self):
        if self.page is None:
            return f'<pre style="white-space: pre-wrap">{html.escape(self.text)}</pre>'
        # A frame of its own: the page's style is not the notebook's.
        return (
            f'<iframe srcdoc="{html.escape(self.page, quote=True)}" sandbox="" '
            'style="width: 100%; height: 600px; border: 1px solid #ccc"></iframe>'
        )


def _said(done) -> str:
    return (done.stdout + done.stderr).rstrip("\n")


_UNCLOSED = "cufit: a quotation mark is not closed"


def _words(line: str):
    try:
        return shlex.split(line)
    except ValueError:
        return None


def doctor(line: str):
    """%doctor [OPTION...]: will PyTorch run on this machine's GPUs?"""
    words = _words(line)
    if words is None:
        return _Shown(_UNCLOSED)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "doctor.html")
        done = run("doctor", "--color", "never", "--html", path, *words)
        page = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                page = file.read()
    return _Shown(_said(done), page)


def _last_error() -> str | None:
    # Python 3.12 has last_exc; IPython sets the other three, too.
    value = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if value is None:
        return None
    return "".join(traceback.format_exception(type(value), value, value.__traceback__))


def explain(line: str):
    """%explain [OPTION...]: the last exception, judged together with this machine."""
    text = _last_error()
    if text is None:
        return _Shown("cufit: no exception was raised in this session")
    words = _words(line)
    if words is None:
        return _Shown(_UNCLOSED)
    done = run("explain", "--color", "never", "--here", *words, "-", input=text)
    return _Shown(_said(done))


def register(shell) -> None:
    shell.register_magic_function(doctor, "line", "doctor")
    shell.register_magic_function(explain, "line", "explain")
