# SPDX-License-Identifier: Apache-2.0
"""Threads of the program."""


# Operators are seen by a mode, which every thread has for itself.
def patch_threads(tracer):
    import threading

    real = threading.Thread._bootstrap_inner

    def begin(self):
        mode = type(tracer.mode)()
        mode.__enter__()
        try:
            real(self)
        finally:
            mode.__exit__(None, None, None)

    threading.Thread._bootstrap_inner = begin
