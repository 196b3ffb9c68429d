# ---- an evaluation every so many steps ---------------------------------------------------------------------------------------

# `if step % 500 == 0: evaluate(model)` in the loop over the batches is not come to by a few steps. Where the loop ends for the trace,
# the lines under such a condition are run as the program would run them at a later step, with the names that the loop has: those that
# switch modules to evaluation or gradients off, themselves or in what they call, and that train nothing. So is a condition of the
# loops around it (`if epoch % 5 == 0`) that does not hold in this round; one that holds is come to anyway.
def evaluate_within(frame, told, failed):
    innermost = True
    while frame is not None:
        file = frame.f_code.co_filename
        loop = loop_at(file, frame.f_lineno) if users_file(file) else None
        if loop is not None:
            names = {**frame.f_globals, **frame.f_locals}
            for condition in conditions_within(loop):
                if not (comes_later(condition.test, names, innermost) and evaluates(condition.body, names)):
                    continue
                source = "%s:%d" % (users_file(file), condition.lineno)
                try:
                    lines = compile(as_loop(condition), file, "exec", dont_inherit=True)
                except SyntaxError:
                    continue
                told(source)
                try:
                    exec(lines, names)
                except (Exception, SystemExit) as error:
                    failed("%s: %s" % (type(error).__name__, error), source)
            innermost = False
        frame = frame.f_back


# The innermost loop around a line, by the source as it is on disk.
def loop_at(file, line):
    import ast
    import linecache
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return None
    around, open_nodes = None, [tree]
    while open_nodes:
        node = open_nodes.pop()
        for child in ast.iter_child_nodes(node):
            if getattr(child, "lineno", line) <= line <= getattr(child, "end_lineno", line):
                if isinstance(child, (ast.For, ast.While)):
                    around = child
                elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                    around = None
                open_nodes.append(child)
    return around


# `if`s of one round of a loop, those within others too; those of loops and functions within it are not.
def conditions_within(loop):
    import ast
    waiting = list(loop.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.If):
            yield node
        if isinstance(node, (ast.If, ast.With, ast.Try)):
            waiting[:0] = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]


# Whether a condition counts (has a remainder) and its other parts hold; `now`: though the whole may hold, too.
def comes_later(test, names, now):
    import ast

    def counts(node):
        return any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod) for part in ast.walk(node))

    # Reading names changes nothing; a call may.
    def holds(node):
        if any(isinstance(part, (ast.Await, ast.NamedExpr)) or isinstance(part, ast.Call) and getattr(part.func, "id", "") not in ("len", "int", "min", "max", "round")
               for part in ast.walk(node)):
            return False
        try:
            return bool(eval(compile(ast.Expression(node), "<condition>", "eval", dont_inherit=True), dict(names)))
        except Exception:
            return False

    if not counts(test):
        return False
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    return all(counts(part) or compares_counts(part) or holds(part) for part in parts) and (now or not holds(test))


# `step > 0`, `step >= args.start`: of a counter that goes on.
def compares_counts(part):
    import ast
    return (isinstance(part, ast.Compare) and len(part.ops) == 1 and isinstance(part.left, (ast.Name, ast.Attribute)) and
            isinstance(part.ops[0], (ast.Gt, ast.GtE, ast.NotEq)))


def evaluates(statements, names):
    import ast
    calls = [node for statement in statements for node in ast.walk(statement) if isinstance(node, ast.Call)]
    methods = {call.func.attr for call in calls if isinstance(call.func, ast.Attribute)}
    if methods & {"backward", "step"}:
        return False
    if "eval" in methods:
        return True
    used = [names_used(called(call.func, names), 3, set()) for call in calls]
    return not any("backward" in one for one in used) and any(one & {"eval", "no_grad", "inference_mode", "decorate_context"} for one in used)


# What `evaluate`, `self.trainer.evaluate` stand for; None: unknown.
def called(node, names):
    import ast
    path = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return None
    found = names[node.id]
    for attribute in reversed(path):
        try:
            found = getattr(found, attribute, None)
        except Exception:
            return None
    return found


# By a function of the user's and by those that it calls; of a library's, only whether it switches gradients off.
def names_used(function, depth, seen):
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None or id(code) in seen:
        return set()
    seen.add(id(code))
    if code.co_name == "decorate_context":
        return {code.co_name}
    if not users_file(code.co_filename):
        return set()
    waiting, used = [code], set()
    while waiting:
        one = waiting.pop()
        used.update(one.co_names)
        waiting += [constant for constant in one.co_consts if isinstance(constant, type(code))]
    if depth:
        space = getattr(function, "__globals__", {})
        for name in list(used):
            used |= names_used(space.get(name), depth - 1, seen)
    return used


# So that `break` and `continue` end the lines; so does `return`.
def as_loop(condition):
    import ast
    import copy

    class Ends(ast.NodeTransformer):
        def visit_Return(self, node):
            return ast.copy_location(ast.Break(), node)

        def as_is(self, node):
            return node

        visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = as_is

    body = [Ends().visit(copy.deepcopy(statement)) for statement in condition.body]
    once = ast.For(ast.Name("_cufit_once", ast.Store()), ast.Tuple([ast.Constant(0)], ast.Load()), body, [], None)
    ast.copy_location(once, condition)
    return ast.fix_missing_locations(ast.Module([once], []))
