# SPDX-License-Identifier: Apache-2.0
"""Why there is nothing to measure."""


class Failure(Exception):
    """Of a kind that cufit has words for (src/formats/bench/bench_answer.h)."""

    def __init__(self, kind, why=""):
        super().__init__(kind, why)
        self.kind, self.why = kind, why


def first_line(error):
    lines = str(error).strip().splitlines()
    name = type(error).__name__
    return ("%s: %s" % (name, lines[0]) if lines else name)[:300]
