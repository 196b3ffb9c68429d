# SPDX-License-Identifier: Apache-2.0
"""An evaluation every so many steps: the lines of the program's loop that are run beside it."""

import sys

from .evaluation_source import codes_of, lines_that_count, reached_later
from ..user_files import users_file


# `if step % 500 == 0: evaluate(model)` in the loop over the batches is not come to by a few steps.
# Where the loop ends for the trace, the lines under such a condition that evaluate are run as the
# program would run them at a later step, with the names that the loop has. Not those behind them (a
# checkpoint is saved, a value is logged), nothing that trains, and nothing under a condition that
# does not hold: what decides stands in the source, and is read there. The source must be that of
# the code that runs.
class BlockEnds(BaseException):  # programs catch Exception
    pass


# Yields the place of each, what it is about to run as a function, which answers with the names that
# it bound. `behind`: what stands behind the loop and behind those around it, too, also in the
# functions that called; of that, with `counted`, what comes now and then.
def evaluations_within(frame, behind=False, counted=False):
    inside = False  # of a loop, in a frame before
    while frame is not None:
        code = frame.f_code
        if users_file(code.co_filename) and (
            code.co_name == "<module>" or not code.co_name.startswith("<")
        ):
            body, tails = around(code, frame.f_lineno, inside)
            if body is not None or inside and tails:
                names = names_of(frame)
                for statements in ([] if body is None or inside or counted else [body]) + (
                    tails if behind else []
                ):
                    blocks = (
                        []
                        if counted or statements is body
                        else [(statements[0].lineno, statements)]
                    )
                    blocks += [
                        (condition.lineno, condition.body)
                        for condition in reached_later(statements, names)
                    ]
                    for line, block in blocks:
                        lines = lines_that_count(block, names)
                        if lines is not None:
                            yield (
                                "%s:%d" % (users_file(code.co_filename), line),
                                block_of(lines, code.co_filename, names),
                            )
            hands_on = code.co_flags & 0x20  # a generator of batches
            if not behind and not hands_on:
                return
            inside = inside or body is not None and not hands_on
        frame = frame.f_back


# Before Python 3.13 a frame keeps the dictionary made of its variables, and with it the values that
# they had.
def names_of(frame):
    local = frame.f_locals
    names = {**frame.f_globals, **local}
    if frame.f_code.co_flags & 0x1 and sys.version_info < (3, 13):
        local.clear()
    return names


def block_of(lines, file, names):
    import ast

    module = ast.fix_missing_locations(ast.Module(lines, []))

    def run():
        space = dict(names)
        exec(compile(module, file, "exec", dont_inherit=True), space)
        return {
            name: value
            for name, value in space.items()
            if name != "__builtins__" and (name not in names or names[name] is not value)
        }

    return run


# The statements of the innermost loop around a line, and what stands behind that and what is around
# it; `inside`: behind the line's own statement. None, and nothing: there is no loop, or the file
# has changed since the code was read from it.
def around(code, line, inside):
    import ast
    import linecache

    try:
        text = "".join(linecache.getlines(code.co_filename))
        tree, compiled = ast.parse(text), compile(text, code.co_filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return None, []
    if not any(
        one.co_firstlineno == code.co_firstlineno
        and one.co_name == code.co_name
        and one.co_code == code.co_code
        and one.co_names == code.co_names
        for one in codes_of(compiled)
    ):
        return None, []
    body, tails, node = None, [], tree
    while node is not None:
        lists = [
            value
            for _, value in ast.iter_fields(node)
            if isinstance(value, list)
            and value
            and isinstance(value[0], (ast.stmt, ast.ExceptHandler))
        ]
        found = next(
            (
                (statements, at)
                for statements in lists
                for at, child in enumerate(statements)
                if child.lineno <= line <= child.end_lineno
            ),
            None,
        )
        if found is None:
            break
        statements, at = found
        node = statements[at]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            body, tails = None, []
            continue
        if statements[at + 1 :]:
            tails.insert(0, statements[at + 1 :])
        if isinstance(node, (ast.For, ast.While)):
            body, outside = node.body, len(tails)
    if not inside:
        tails = tails[len(tails) - outside :] if body is not None else []
    return body, tails
