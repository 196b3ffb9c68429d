# SPDX-License-Identifier: Apache-2.0
"""Sizes that a loop draws every so many steps."""

from ..user_files import users_file
from .evaluation_lines import around, names_of
from .evaluation_source import reached_later

DRAWS = {"choice", "choices", "integers", "randint", "randrange", "sample", "uniform"}
# What is done with a value to show it.
SHOWS = {"debug", "error", "info", "log", "pprint", "print", "warning", "write"}
SHOWS |= {"add_figure", "add_image", "add_images", "add_scalar", "add_text"}
SHOWS |= {"imsave", "imshow", "imwrite", "save", "save_image", "savefig", "show"}


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
                return any(draws(block.body, code) for block in reached_later(body, names))
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


# Whether what these statements draw is used beyond them: read elsewhere, kept in an object, handed
# on. What is drawn to be shown (`sample = random.choice(samples); print(sample)`) is not.
def draws(statements, code):
    drawn = set()
    for statement in statements:
        if is_assignment(statement) and is_drawn(statement.value):
            if any(kept(target, drawn) for target in targets_of(statement)):
                return True
    return bool(drawn) and (handed_on(statements, drawn) or read_elsewhere(statements, drawn, code))


def is_assignment(node):
    import ast

    return isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and node.value is not None


def targets_of(node):
    return node.targets if hasattr(node, "targets") else [node.target]


def is_drawn(value):
    import ast

    return any(
        isinstance(call, ast.Call)
        and (getattr(call.func, "attr", None) or getattr(call.func, "id", None)) in DRAWS
        for call in ast.walk(value)
    )


# Adds the names that a target binds. An attribute or an item is read by whom this does not see.
def kept(target, names):
    import ast

    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return any(
        isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store)
        for node in ast.walk(target)
    )


# Adds what is made of `drawn` to it.
def handed_on(statements, drawn):
    import ast

    nodes = [node for statement in statements for node in ast.walk(statement)]
    before = 0
    while before < len(drawn):
        before = len(drawn)
        for node in nodes:
            if is_assignment(node) or isinstance(node, (ast.NamedExpr, ast.comprehension, ast.For)):
                value = getattr(node, "value", None) or node.iter
                if mentions(value, drawn) and any(kept(to, drawn) for to in targets_of(node)):
                    return True
            elif isinstance(node, ast.Expr) and not is_shown(node.value):
                if mentions(node.value, drawn):
                    return True
            elif isinstance(node, (ast.If, ast.While)) and mentions(node.test, drawn):
                return True
            elif isinstance(node, ast.Return) and node.value and mentions(node.value, drawn):
                return True
    return False


def is_shown(value):
    import ast

    function = value.func if isinstance(value, ast.Call) else None
    return (getattr(function, "attr", None) or getattr(function, "id", None)) in SHOWS


def mentions(value, names):
    import ast

    return any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(value))


# In the function around them, or in the file where the names are of all its functions.
def read_elsewhere(statements, names, code):
    import ast
    import linecache

    tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    first, last = statements[0].lineno, statements[-1].end_lineno
    functions = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.lineno <= first
        and last <= node.end_lineno
    ]
    own = names <= {*code.co_varnames, *code.co_cellvars}
    scope = max(functions, key=lambda node: node.lineno, default=tree) if own else tree
    return any(
        isinstance(node, ast.Name)
        and node.id in names
        and isinstance(node.ctx, ast.Load)
        and not first <= node.lineno <= last
        for node in ast.walk(scope)
    )
