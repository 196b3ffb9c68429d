# SPDX-License-Identifier: Apache-2.0
"""Assertions of the program about values that nobody has: they hold."""

import dis
import sys

RAISES = ("LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT")
JUMPS = {"IF_TRUE": True, "IF_FALSE": False}
STEPS_BETWEEN = ("TO_BOOL", "CACHE", "NOT_TAKEN", "EXTENDED_ARG")


class Assertions:
    def __init__(self):
        self.instructions = {}  # of each code: where they stand, and their names

    # What a truth value has to be that is read now, so that the `assert` that asks for it goes on;
    # None where none does.
    def wanted(self):
        frame = sys._getframe(1)
        while frame is not None and str(frame.f_globals.get("__name__")).startswith("cufit_tracer"):
            frame = frame.f_back
        if frame is None:
            return None
        code = frame.f_code
        if code not in self.instructions:
            self.instructions[code] = [
                (one.offset, one.opname, one.argrepr) for one in dis.get_instructions(code)
            ]
        left = [one for one in self.instructions[code] if one[0] >= frame.f_lasti]
        left = [one for one in left[:12] if one[1] not in STEPS_BETWEEN]
        if len(left) < 2 or not left[0][1].startswith("POP_JUMP"):
            return None
        raises = left[1][1] in RAISES and left[1][2] in ("", "AssertionError")
        held = [value for end, value in JUMPS.items() if left[0][1].endswith(end)]
        return held[0] if raises and held else None
