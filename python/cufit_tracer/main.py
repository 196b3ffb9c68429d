# SPDX-License-Identifier: Apache-2.0
"""The three ways into the tracer: at the start of a Python, as the program of `--function`, and as
the process in which cuDNN is asked."""

import sys


def entry(as_program):
    if as_program and sys.argv[1:2] == ["--cudnn"]:
        from .cuda.cudnn_answers import answer_for_cudnn

        return lambda: answer_for_cudnn(sys.argv[2])
    if as_program:
        from .function_steps import run_function

        return run_function
    from .start import start

    return start
