# SPDX-License-Identifier: Apache-2.0
"""Where the tracer looks on while something is compiled, and where not."""


def said(error):
    import re

    return re.sub(
        " object at 0x[0-9a-f]+",
        "",
        " ".join(("%s: %s" % (type(error).__name__, error)).split("\n")[:2]),
    ).strip()


# A piece of the program during which the tracer's mode is there or away; `compiling`: whether that
# is a part of torch.compile.
class Listening:
    def __init__(self, compiler, wanted):
        self.compiler, self.tracer, self.wanted = compiler, compiler.tracer, wanted
        self.over = []

    def __enter__(self):
        tracer = self.tracer
        self.compiling, tracer.compiling = tracer.compiling, not self.wanted
        tracer.compiled = tracer.compiled or not self.wanted
        self.change = self.compiler.listens() != self.wanted
        if self.change:
            self.turn(self.wanted)

    def __exit__(self, *error):
        self.tracer.compiling = self.compiling
        if self.change:
            self.turn(not self.wanted)

    # Modes that lie over the tracer's own (torch's checks of custom operators) stay over it.
    def turn(self, on):
        from torch.utils import _python_dispatch as modes

        mode, stack = self.tracer.mode, modes._get_current_dispatch_mode_stack()
        if on:
            over = self.over if stack[len(stack) - len(self.over) :] == self.over else []
        else:
            over = self.over = stack[stack.index(mode) + 1 :]
        for _ in over:
            modes._pop_mode()
        mode.__enter__() if on else mode.__exit__(None, None, None)
        for other in over:
            modes._push_mode(other)


def listening(compiler, function):
    def run(*args, **kwargs):
        if not compiler.tracer.compiling:
            return function(*args, **kwargs)
        with compiler.on():
            compiler.tracer.compiling = True
            return function(*args, **kwargs)

    return run
