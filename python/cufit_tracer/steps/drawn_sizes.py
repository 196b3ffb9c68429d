# SPDX-License-Identifier: Apache-2.0
"""Sizes that a loop draws every so many steps."""

from ..user_files import users_file
from .evaluation_lines import around, names_of
from .evaluation_source import reached_later

DRAWS = {"choice", "choices", "integers", "randint", "randrange", "sample", "uniform"}


# `if step % 10 == 0: size = random.choice(sizes)` in the loop over the batches: these are of one
# size until the next is drawn, and a few steps do not show that it changes. `frame`: where a step
# ends.
def draws_later(frame):
    while frame is not None:
        code = frame.f_code
        if users_file(code.co_filename) and not code.co_name.startswith("<l"):
            body, _ = around(code, frame.f_lineno, False)
            if body is not None:
                names = {k: value for k, value in names_of(frame).items() if is_plain(value)}
                return any(draws(block.body) for block in reached_later(body, names))
        frame = frame.f_back
    return False


# Numbers and texts, and settings made of them: to ask these runs nothing of the program's.
def is_plain(value):
    if value is None or type(value) in (bool, int, float, str):
        return True
    of = value if type(value) is dict else getattr(value, "__dict__", None)
    return (
        type(of) is dict
        and len(of) < 200
        and all(one is None or type(one) in (bool, int, float, str) for one in of.values())
    )


def draws(statements):
    import ast

    for statement in statements:
        if not isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            continue
        for call in ast.walk(statement):
            if isinstance(call, ast.Call):
                name = getattr(call.func, "attr", None) or getattr(call.func, "id", None)
                if name in DRAWS:
                    return True
    return False
