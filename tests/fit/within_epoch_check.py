# SPDX-License-Identifier: Apache-2.0
# Which lines of a program's loop the tracer of `cufit fit` takes for an evaluation, read from the source.
# Run by tests/unit/host/python/fit_tracer_test.cc from the top folder; says what is wrong and ends with 1.
import os
import sys
import tempfile

from stand_ins import DataLoader

from cufit_tracer.steps.evaluation_lines import evaluations_within
from cufit_tracer.user_files import shown_path


PROGRAM = """
import contextlib

class Module:
    training = True

    def eval(self):
        log.append("eval")

    def train(self):
        log.append("train")

class Trained:
    def step(self):
        pass
    backward = step

class Run:
    def check(self):
        self.inner()

    def inner(self):
        model.eval()

    def fit(self):
        model.eval()
        self.back()

    def back(self):
        Trained().backward()

def no_grad():
    return contextlib.nullcontext()

torch = type("torch", (), {"no_grad": staticmethod(no_grad)})

def evaluate(value=1):
    model.eval()
    model.train()
    return value

def validate():
    return evaluate()

def without_gradients(function):
    def decorate_context():
        return function()
    decorate_context.__wrapped__ = function
    return decorate_context

@without_gradients
def sample():
    log.append("sample")

@without_gradients
def trains():
    Trained().backward()

def penalty():
    model.eval()
    Trained().backward()

log, every, off, debug, model, run = [], 500, 0, False, Module(), Run()

def train(batches):
    for step, batch in enumerate(batches, 1):
        BLOCK

def batches_of(batches):
    for batch in batches:
        yield batch

def cycle(batches):
    for step, batch in enumerate(batches_of(batches), 1):
        BLOCK
"""
EVALUATED = ["eval", "train"]
BLOCKS = [  # lines; what is run: None: nothing, else the log
    ("if step % every == 0: evaluate()", EVALUATED),
    ("if step % every == 0 and step > 0: validate()", EVALUATED),
    ("if step % every == 0 and step > 100: validate()", EVALUATED),
    ("if step % every == 0: sample()", ["sample"]),
    ("if step % every == 0: trains()", None),
    ("if off > 0 and step % off == 0: evaluate()", None),
    ("if every != 500 and step % every == 0: evaluate()", None),
    ("if step % int(every) == 0: run.check()", ["eval"]),
    ("if step % every == 0: run.fit()", None),
    ("if step % every == 0: penalty()", None),
    ("if step % every == 0: model.eval(); penalty()", None),
    ("if step % every == 0: Trained().backward(); evaluate()", None),
    ("if step % every == 0: log.append('prints')", None),
    ("if step == 7: evaluate()", None),
    ("if 'ab%d' % step == 'ab500': evaluate()", None),
    ("if debug:\n            if step % every == 0: evaluate()", None),
    ("if not debug:\n            if step % every == 0: evaluate()", EVALUATED),
    ("if debug: pass\n        else:\n            if step % every == 0: evaluate()", EVALUATED),
    ("if log.append('asked'):\n            if step % every == 0: evaluate()", None),
    ("if log.append('asked') or step % every == 0: evaluate()", EVALUATED),
    ("if step % every == 0:\n            log.append('before'); log.append(evaluate('in')); log.append('behind')", ["before", "eval", "train"]),
    ("if step % every == 0:\n            best = evaluate()\n            if best: break", EVALUATED),
    ("if step % every == 0: return evaluate()", EVALUATED),
    ("if step % every == 0:\n            kept = evaluate()\n            log.append('used')\n            del kept", EVALUATED),
    ("if step % every == 0:\n            evaluate()\n            other = 1\n            del other", EVALUATED),
    ("if step % every == 0:\n            with torch.no_grad(): return log.append('inner')", None),
    ("if step % every == 0:\n            model.eval()\n            for i in range(2):\n                if i: break\n                log.append(i)\n"
     "            model.train()\n            log.append('behind')", ["eval", 0, "train"]),
    ("if step % every == 0:\n            with torch.no_grad(): log.append('in')\n            model.train(); log.append('behind')", ["in", "train"]),
    ("if step % 2 == 0:\n            Trained().step()\n            if step % every == 0: evaluate()", EVALUATED),
    ("for other in range(0):\n            if other % 2 == 0: evaluate()", None),
    ("if step % every == 0: model.eval(); undefined()", ["eval"]),
    ("if step % every == 0:\n            with torch.no_grad(): undefined()", "NameError: name 'undefined' is not defined"),
]


# What stands behind loops that no DataLoader feeds, here and in the functions that called.
BY_HAND = """
def step():
    here()
    log.append("of the step")

def train():
    for i in range(2):
        step()
        log.append("of the loop")
        if i % 7 == 0:
            evaluate("counted")
    evaluate("behind")

def main():
    for epoch in range(3):
        train()
        for part in range(2):
            evaluate(part)
        if epoch % 5 == 0:
            evaluate("now and then")
        Trained().step()
    evaluate("end")
    Trained().backward()
"""


def check_by_hand(folder):
    path = os.path.join(folder, "by_hand.py")
    text = PROGRAM[:PROGRAM.index("def train(batches)")] + BY_HAND
    with open(path, "w") as out:
        out.write(text)

    class Stop(Exception):
        pass

    def here():
        for line, run in evaluations_within(sys._getframe(1), behind=True):
            if not line.startswith(shown_path(path)):  # of this file, which calls
                break
            lines.append(text.split("\n")[int(line.rpartition(":")[2]) - 1].strip())
            run()
        raise Stop

    names, lines = {"__name__": "by_hand", "here": here}, []
    exec(compile(text, path, "exec"), names)
    try:
        names["main"]()
    except Stop:
        pass
    assert lines == ["if i % 7 == 0:", 'evaluate("behind")', "for part in range(2):", "if epoch % 5 == 0:"], lines
    assert names["log"] == ["eval", "train"] * 5, names["log"]


def check_within_epoch(folder):
    path = os.path.join(folder, "program.py")

    class Stop(Exception):
        pass

    def run(function, block, changed=""):
        import linecache
        text = PROGRAM.replace("BLOCK", block)
        with open(path, "w") as out:
            out.write(text.replace("every == 0", "every == 1") if changed else text)
        linecache.clearcache()
        out, names = [], {"__name__": "program"}

        class Batches:
            def __iter__(self):
                yield 1
                names["log"].clear()  # the round so far was the program's own
                for line, lines in evaluations_within(sys._getframe(1)):
                    assert text.split("\n")[int(line.rpartition(":")[2]) - 1].strip().startswith("if "), line
                    try:
                        out.append(lines())
                    except NameError as error:
                        out.append(str(error))
                raise Stop

        exec(compile(text, path, "exec"), names)
        try:
            names[function](Batches())
            assert False, "the loop was left"
        except Stop:
            pass
        return names["log"], out

    for block, wanted in BLOCKS:
        for function in ("train", "cycle"):
            log, out = run(function, block)
            if isinstance(wanted, str):
                assert not out or "NameError: " + out[0] == wanted, (block, out)
            else:
                assert log == (wanted or []) and len(out) == (wanted is not None), (block, function, log, out)
    _, out = run("train", "if step % every == 0: found = evaluate(3)")
    assert out == [{"found": 3}], out
    _, out = run("train", "if step % every == 0:\n            found = evaluate(3)\n            more = 7\n            del found")
    assert out == [{}], out
    assert run("train", BLOCKS[0][0], changed="yes")[1] == [], "the file is another than the code's"


# Two epochs of a program with an evaluation every 50 steps and one behind each epoch: in which order what is come to.


with tempfile.TemporaryDirectory() as folder:
    check_within_epoch(folder)
    check_by_hand(folder)
