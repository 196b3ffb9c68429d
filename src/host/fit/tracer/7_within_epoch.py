# ---- an evaluation every so many steps ---------------------------------------------------------------------------------------

# `if step % 500 == 0: evaluate(model)` in the loop over the batches is not come to by a few steps. Where the loop ends for the trace,
# the lines under such a condition that evaluate are run as the program would run them at a later step, with the names that the loop
# has. Not those behind them (a checkpoint is saved, a value is logged), nothing that trains, and nothing under a condition that does
# not hold: what decides stands in the source, and is read there. The source must be that of the code that runs.
class BlockEnds(BaseException):  # programs catch Exception
    pass


# Yields the place of each, what it is about to run as a function, which answers with the names that it bound. `behind`: what stands
# behind the loop and behind those around it, too, also in the functions that called; of that, with `counted`, what comes now and then.
def evaluations_within(frame, behind=False, counted=False):
    inside = False  # of a loop, in a frame before
    while frame is not None:
        code = frame.f_code
        if users_file(code.co_filename) and (code.co_name == "<module>" or not code.co_name.startswith("<")):
            body, tails = around(code, frame.f_lineno, inside)
            if body is not None or inside and tails:
                names = names_of(frame)
                for statements in ([] if body is None or inside or counted else [body]) + (tails if behind else []):
                    blocks = [] if counted or statements is body else [(statements[0].lineno, statements)]
                    blocks += [(condition.lineno, condition.body) for condition in reached_later(statements, names)]
                    for line, block in blocks:
                        lines = lines_that_count(block, names)
                        if lines is not None:
                            yield "%s:%d" % (users_file(code.co_filename), line), block_of(lines, code.co_filename, names)
            hands_on = code.co_flags & 0x20  # a generator of batches
            if not behind and not hands_on:
                return
            inside = inside or body is not None and not hands_on
        frame = frame.f_back


# Before Python 3.13 a frame keeps the dictionary made of its variables, and with it the values that they had.
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
        return {name: value for name, value in space.items() if name != "__builtins__" and (name not in names or names[name] is not value)}

    return run


# The statements of the innermost loop around a line, and what stands behind that and what is around it; `inside`: behind the line's
# own statement. None, and nothing: there is no loop, or the file has changed since the code was read from it.
def around(code, line, inside):
    import ast
    import linecache
    try:
        text = "".join(linecache.getlines(code.co_filename))
        tree, compiled = ast.parse(text), compile(text, code.co_filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return None, []
    if not any(one.co_firstlineno == code.co_firstlineno and one.co_name == code.co_name and one.co_code == code.co_code and
               one.co_names == code.co_names for one in codes_of(compiled)):
        return None, []
    body, tails, node = None, [], tree
    while node is not None:
        lists = [value for _, value in ast.iter_fields(node) if isinstance(value, list) and value and isinstance(value[0], (ast.stmt, ast.ExceptHandler))]
        found = next(((statements, at) for statements in lists for at, child in enumerate(statements) if child.lineno <= line <= child.end_lineno), None)
        if found is None:
            break
        statements, at = found
        node = statements[at]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            body, tails = None, []
            continue
        if statements[at + 1:]:
            tails.insert(0, statements[at + 1:])
        if isinstance(node, (ast.For, ast.While)):
            body, outside = node.body, len(tails)
    if not inside:
        tails = tails[len(tails) - outside:] if body is not None else []
    return body, tails


def codes_of(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            yield from codes_of(constant)


# The `if`s of a round whose condition has a remainder and else holds, under conditions that hold or have one.
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
    return any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod) and not isinstance(part.left, (ast.Constant, ast.JoinedStr))
               for part in ast.walk(test))


# `step % 100 == 0 and step > 0 and debug`: the parts that count will hold, `step` will be greater; the others must hold now.
def comes_later(test, names):
    import ast
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    counted = {ast.dump(name) for part in ast.walk(test) if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod)
               for name in ast.walk(part.left) if isinstance(name, (ast.Name, ast.Attribute))}
    return all(counts(part) or isinstance(part, ast.Compare) and isinstance(part.ops[0], (ast.Gt, ast.GtE, ast.NotEq)) and
               ast.dump(part.left) in counted or value_of(part, names) for part in parts)


# None: not to be known without calling something of the program's.
def value_of(node, names):
    import ast
    known = (ast.Call, ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.expr_context, ast.cmpop, ast.boolop,
             ast.unaryop, ast.operator, ast.Expression)
    for part in ast.walk(node):
        if not isinstance(part, known) or isinstance(part, ast.Call) and getattr(part.func, "id", "") not in ("len", "int", "min", "max"):
            return None
    try:
        return bool(eval(compile(ast.Expression(node), "<condition>", "eval", dont_inherit=True), dict(names)))
    except Exception:
        return None


# Up to the last statement that evaluates, and those behind it that switch back to training or delete what these made. None: none
# does, or something trains.
def lines_that_count(statements, names):
    import ast
    import copy
    statements = [statement for statement in statements if not (isinstance(statement, ast.If) and counts(statement.test))]  # a case of its own
    marks = {id(call): used_by(call, names) for statement in statements for call in ast.walk(statement) if isinstance(call, ast.Call)}
    if any("backward" in used for used in marks.values()):
        return None
    lines, end, evaluating = [], 0, False
    for statement in statements:
        if isinstance(statement, ast.Delete) and end:  # of what they made
            made = {node.id for line in lines[:end] for node in ast.walk(line) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
            if all(isinstance(target, ast.Name) and target.id in made for target in statement.targets):
                lines[end:] = [copy.deepcopy(statement)]
                end = len(lines)
            continue
        found = [node for node in ast.walk(statement) if marks.get(id(node), set()) & {"eval", "no_grad", "inference_mode"}]
        method = getattr(getattr(getattr(statement, "value", None), "func", None), "attr", "") if isinstance(statement, ast.Expr) else ""
        simple = isinstance(statement, (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return))
        if found and not simple and any(isinstance(node, (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.Await)) for node in own_nodes(statement)):
            return None
        if method == "train" and end:
            lines[end:] = lines[end:] if evaluating else []  # between `model.eval()` and `model.train()`
        if found and simple and getattr(statement, "value", None) not in found or isinstance(statement, ast.Return) and found:
            # `log.info("%f", evaluate(model))`: the call alone.
            lines.append(ast.copy_location(ast.Expr(copy.deepcopy(found[0])), statement))
        else:
            lines.append(copy.deepcopy(statement))
        if found or method == "train" and end:
            end = len(lines)
            evaluating = method == "eval"
    return lines[:end] or None


# Of loops within the statement, `break` and `continue` are their own.
def own_nodes(statement):
    import ast
    yield statement
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        inner = own_nodes(child)
        loop = isinstance(statement, (ast.For, ast.While))
        yield from (node for node in inner if not loop or not isinstance(node, (ast.Break, ast.Continue)))


# The names of attributes and globals that a call's function uses, and the functions of the user's that it calls.
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


# So far as the source shows: globals that are called, methods of the same object. A function under `@torch.no_grad()` is wrapped by
# one of torch's that has this name.
def names_used(function, depth, seen):
    import dis
    import types
    owner, out = getattr(function, "__self__", None), set()
    function = getattr(function, "__func__", function)
    while getattr(getattr(function, "__code__", None), "co_name", "") == "decorate_context" and hasattr(function, "__wrapped__"):
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
            elif instruction.opname in ("LOAD_METHOD", "LOAD_ATTR") and owner is not None and not isinstance(owner, types.ModuleType):
                used = getattr(type(owner), str(instruction.argval), None)
                used = types.MethodType(used, owner) if callable(used) and hasattr(used, "__code__") else None
            out |= names_used(used, depth - 1, seen)
    return out
