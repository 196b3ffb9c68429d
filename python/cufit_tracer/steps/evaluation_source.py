# SPDX-License-Identifier: Apache-2.0
"""Which statements evaluate and which are reached at a later step, read from the source."""

from ..user_files import users_file


# The `if`s of a round whose condition has a remainder and else holds, under conditions that hold or
# have one.
def reached_later(statements, names):
    import ast

    for node in statements:
        if isinstance(node, ast.If):
            if counts(node.test):
                if comes_later(node.test, names):
                    yield node
                    yield from reached_later(node.body, names)
                yield from reached_later(node.orelse, names)
            else:
                holds = value_of(node.test, names)
                if holds is not None:
                    yield from reached_later(node.body if holds else node.orelse, names)
        elif isinstance(node, (ast.With, ast.Try)):
            yield from reached_later(node.body, names)


def counts(test):
    import ast

    return any(
        isinstance(part, ast.BinOp)
        and isinstance(part.op, ast.Mod)
        and not isinstance(part.left, (ast.Constant, ast.JoinedStr))
        for part in ast.walk(test)
    )


# `step % 100 == 0 and step > 0 and debug`: the parts that count will hold, `step` will be greater;
# the others must hold now.
def comes_later(test, names):
    import ast

    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    counted = {
        ast.dump(name)
        for part in ast.walk(test)
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod)
        for name in ast.walk(part.left)
        if isinstance(name, (ast.Name, ast.Attribute))
    }
    return all(
        counts(part)
        or isinstance(part, ast.Compare)
        and isinstance(part.ops[0], (ast.Gt, ast.GtE, ast.NotEq))
        and ast.dump(part.left) in counted
        or value_of(part, names)
        for part in parts
    )


# None: not to be known without calling something of the program's.
def value_of(node, names):
    import ast

    known = (
        ast.Call,
        ast.Name,
        ast.Attribute,
        ast.Constant,
        ast.Compare,
        ast.BoolOp,
        ast.UnaryOp,
        ast.BinOp,
        ast.expr_context,
        ast.cmpop,
        ast.boolop,
        ast.unaryop,
        ast.operator,
        ast.Expression,
    )
    for part in ast.walk(node):
        if (
            not isinstance(part, known)
            or isinstance(part, ast.Call)
            and getattr(part.func, "id", "") not in ("len", "int", "min", "max")
        ):
            return None
    try:
        return bool(
            eval(
                compile(ast.Expression(node), "<condition>", "eval", dont_inherit=True), dict(names)
            )
        )
    except Exception:
        return None


# Up to the last statement that evaluates, and those behind it that switch back to training or
# delete what these made. None: none does, or something trains.
def lines_that_count(statements, names):
    import ast

    # A condition that counts is a case of its own.
    statements = [one for one in statements if not (isinstance(one, ast.If) and counts(one.test))]
    calls = [node for one in statements for node in ast.walk(one) if isinstance(node, ast.Call)]
    marks = {id(call): used_by(call, names) for call in calls}
    if any("backward" in used for used in marks.values()):
        return None
    lines = Lines()
    for statement in statements:
        if isinstance(statement, ast.Delete) and lines.end:
            lines.delete(statement)
            continue
        found = [node for node in ast.walk(statement) if evaluates(marks.get(id(node), set()))]
        if found and not is_simple(statement) and leaves(statement):
            return None
        lines.add(statement, found)
    return lines.kept()


def evaluates(used):
    return used & {"eval", "no_grad", "inference_mode"}


def is_simple(statement):
    import ast

    kinds = ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return
    return isinstance(statement, kinds)


def leaves(statement):
    import ast

    kinds = ast.Return, ast.Break, ast.Continue, ast.Yield, ast.Await
    return any(isinstance(node, kinds) for node in own_nodes(statement))


class Lines:
    """Copies of statements, of which those up to `end` are wanted."""

    def __init__(self):
        self.lines, self.end, self.evaluating = [], 0, False

    def kept(self):
        return self.lines[: self.end] or None

    # Of what they made.
    def delete(self, statement):
        import ast
        import copy

        nodes = [node for line in self.lines[: self.end] for node in ast.walk(line)]
        names = [node for node in nodes if isinstance(node, ast.Name)]
        made = {name.id for name in names if isinstance(name.ctx, ast.Store)}
        if all(isinstance(one, ast.Name) and one.id in made for one in statement.targets):
            self.lines[self.end :] = [copy.deepcopy(statement)]
            self.end = len(self.lines)

    # `found`: calls in it that evaluate.
    def add(self, statement, found):
        import ast
        import copy

        method = ""
        if isinstance(statement, ast.Expr):
            method = getattr(getattr(statement.value, "func", None), "attr", "")
        trains = method == "train" and self.end
        if trains and not self.evaluating:
            self.lines[self.end :] = []  # not between `model.eval()` and `model.train()`
        alone = is_simple(statement) and getattr(statement, "value", None) not in found
        if found and (alone or isinstance(statement, ast.Return)):
            # `log.info("%f", evaluate(model))`: the call alone.
            call = ast.Expr(copy.deepcopy(found[0]))
            self.lines.append(ast.copy_location(call, statement))
        else:
            self.lines.append(copy.deepcopy(statement))
        if found or trains:
            self.end = len(self.lines)
            self.evaluating = method == "eval"


# Of loops within the statement, `break` and `continue` are their own.
def own_nodes(statement):
    import ast

    yield statement
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        inner = own_nodes(child)
        loop = isinstance(statement, (ast.For, ast.While))
        yield from (
            node for node in inner if not loop or not isinstance(node, (ast.Break, ast.Continue))
        )


# The names of attributes and globals that a call's function uses, and the functions of the user's
# that it calls.
def used_by(call, names):
    import ast

    function = call.func
    out = {function.attr} if isinstance(function, ast.Attribute) else set()
    path = []
    while isinstance(function, ast.Attribute):
        path.append(function.attr)
        function = function.value
    if not isinstance(function, ast.Name) or function.id not in names:
        return out
    found = names[function.id]
    for attribute in reversed(path):
        try:
            found = getattr(found, attribute, None)
        except Exception:
            return out
    return out | names_used(found, 4, set())


# So far as the source shows: globals that are called, methods of the same object. A function under
# `@torch.no_grad()` is wrapped by one of torch's that has this name.
def names_used(function, depth, seen):
    import dis
    import types

    owner, out = getattr(function, "__self__", None), set()
    function = getattr(function, "__func__", function)
    while getattr(
        getattr(function, "__code__", None), "co_name", ""
    ) == "decorate_context" and hasattr(function, "__wrapped__"):
        out.add("no_grad")
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    if code is None or id(code) in seen or not users_file(code.co_filename):
        return out
    seen.add(id(code))
    space = getattr(function, "__globals__", {})
    for one in codes_of(code):
        out.update(one.co_names)
        for instruction in dis.get_instructions(one) if depth else ():
            used = None
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                used = space.get(instruction.argval)
            elif (
                instruction.opname in ("LOAD_METHOD", "LOAD_ATTR")
                and owner is not None
                and not isinstance(owner, types.ModuleType)
            ):
                used = getattr(type(owner), str(instruction.argval), None)
                used = (
                    types.MethodType(used, owner)
                    if callable(used) and hasattr(used, "__code__")
                    else None
                )
            out |= names_used(used, depth - 1, seen)
    return out


def codes_of(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            yield from codes_of(constant)
