# SPDX-License-Identifier: Apache-2.0
# What the tracer of `cufit fit` does after the traced steps: whose batches are given, what is followed, what is kept off the disk.
# Run by tests/unit/host/python/fit_tracer_test.cc from the top folder; says what is wrong and ends with 1.
import os
import sys
import tempfile
import types

from stand_ins import FakeTensor

from cufit_tracer.event_file import AFTER_STEPS, FORWARD, OTHER, SEEN, STEP_BEGINS, VALIDATION
from cufit_tracer.steps import after_steps, evaluations
from cufit_tracer.steps.after_steps import AfterSteps
from cufit_tracer.user_files import shown_path

after_steps.evaluate_soon = lambda: None


# A training epoch ends early, three batches of validation are given, what each leaves is told, files go to the scratch folder.
def check_after_steps(folder):
    calls, marks, ends, there = [], [], [], {}
    file = types.SimpleNamespace(storages=0, mark=marks.append, site=lambda op, *rest: op, call=lambda site, numbers: calls.append((site, numbers)),
                                 note=lambda *args: None)
    tracer = types.SimpleNamespace(file=file, allocated=0, steps=3, by_function=False, variant=None, began=0, operators=0, phase=FORWARD, torch=types.SimpleNamespace(Tensor=FakeTensor),
                                   compiling=False, capturing=False, evaluates=lambda: False, trained_with=4, source=lambda: "here:1", finish=ends.append, drop=there.pop,
                                   there=lambda first, end: {number: size for number, size in there.items() if first <= number < end},
                                   wanted={"BATCH": None, "DEADLINE": None, "SCRATCH": folder})
    after = tracer.after = AfterSteps(tracer)

    def make(number, size):
        assert number == file.storages
        there[number] = size
        file.storages += 1
        tracer.allocated += size

    class Iterator:
        pass

    class Loader:
        _cufit_order, _cufit_samples, _cufit_batch, _cufit_made = 0, 40, 8, (8, "here:2")

    def following(iterator):
        return after.next(iterator, lambda _: "batch")

    def ended(iterator):
        try:
            following(iterator)
        except StopIteration:
            return True
        return False

    tracer.by_function = True
    assert not after.begin(), "a function's steps are followed by nothing"
    tracer.by_function = False
    training, loader = Iterator(), Loader()
    after.made(training, loader)
    assert following(training) == "batch" and after.training_loader() is loader
    import builtins
    before = builtins.open, os.mkdir, os.makedirs, os.listdir
    assert after.begin() and marks == [AFTER_STEPS] and tracer.phase == OTHER
    assert ended(training), "training would go on"

    model = types.SimpleNamespace()
    validation = Iterator()
    after.made(validation, loader)
    for batch in range(3):
        assert following(validation) == "batch", batch
        after.forward(model, False)
        assert tracer.phase == VALIDATION
        make(3 * batch, 512)  # kept in a list
        if batch:
            there.pop(3 * batch - 2, None)
        make(3 * batch + 1, 1024 * (batch + 1))  # joined with the last one
        after.joins.add(3 * batch + 1)
        make(3 * batch + 2, 64)  # gone with the next
        if batch:
            tracer.allocated -= 1024 * batch + 64
            there.pop(3 * batch - 1)
    assert ended(validation)
    assert calls == [("kept_of_each_batch", [40, 8, 512]), ("joined_batches", [40, 8, 1024, 0]), ("joined_batches", [40, 8, 1024, 1])], calls

    class Small(Loader):
        _cufit_samples, drop_last = 3, False

    few = Iterator()
    few._sampler_iter = iter([[0, 1, 2, 0, 1, 2, 0, 1]])
    after.made(few, Small())
    assert next(few._sampler_iter) == [0, 1, 2], "a batch of what is there"
    Small.drop_last = True
    none = Iterator()
    none._sampler_iter = iter([[0, 1, 2, 0, 1, 2, 0, 1]])
    whole = Small()
    after.made(none, whole)
    assert ended(none), "less than a batch is dropped"

    with open(os.path.join(folder, "..", "cufit-never-made"), "w") as out:
        out.write("made up")
    os.makedirs("/cufit-never-made/a")
    assert os.listdir("/cufit-never-made/a") == []  # the Trainer looks what a checkpoint has
    with open(os.path.join(folder, "..", "cufit-never-made")) as again:
        assert again.read() == "made up"
    assert not os.path.exists("/cufit-never-made")
    assert not ends and not os.path.exists(os.path.join(folder, "..", "cufit-never-made"))
    assert [name for name in os.listdir(folder) if name.startswith("written-")] == ["written-0"]
    builtins.open, os.mkdir, os.makedirs, os.listdir = before
    import io
    io.open = before[0]
    again = Iterator()
    after.made(again, loader)
    assert following(again) == "batch"
    del marks[:]
    after.forward(model, True)  # the next epoch: a step of it
    assert not ends and marks == [STEP_BEGINS] and tracer.phase == FORWARD
    after.forward(model, True)  # another module
    assert not ends and len(marks) == 1
    assert not after.begin() and after.left, "the trace ends behind that step"
    after.left = False
    tracer.phase = OTHER
    after.forward(model, True)
    assert ends == [SEEN], ends


# Whether `train` of PROGRAM stands in its loop and the lines below `if` are in it: what of them would be run.


LOOP = """
def evaluate(name):
    for batch in Batches(name):
        model.eval()
        forward(name)
    return 1

def hidden():
    model.eval()
    forward("train")

def main(accumulate):
    for epoch in range(2):
        model.train()
        for i, batch in enumerate(Batches("train"), 1):
            forward("train")
            if i % accumulate == 0:
                step()
            if i % 50 == 0:
                kept = evaluate("within")
            if i % 70 == 0:
                hidden()
        evaluate("epoch")
        if epoch % 3 == 2:
            evaluate("seldom")
"""


def check_loop(folder):
    path = os.path.join(folder, "loop.py")
    with open(path, "w") as out:
        out.write(LOOP)
    evaluations.tensors_within = lambda torch, value: [value] if value == 1 and keeps else []

    class Done(BaseException):
        pass

    class Loader:
        _cufit_made = (8, "here:1")

    def go(accumulate):
        log, notes = [], []
        file = types.SimpleNamespace(storages=0, mark=lambda mark: log.append("<%d>" % mark), note=lambda kind, what, line: notes.append((what, line)))
        tracer = types.SimpleNamespace(file=file, allocated=0, steps=0, by_function=False, variant=None, began=0, operators=0, phase=OTHER, torch=types.SimpleNamespace(Tensor=FakeTensor),
                                       compiling=False, capturing=False, evaluates=lambda: False, trained_with=8, source=lambda: "here:1", modules=[], outermost=set(),
                                       wanted={"BATCH": None, "DEADLINE": None, "SCRATCH": ""})

        def finish(reason):
            assert False, "the trace ends twice"

        tracer.finish = finish
        after = tracer.after = AfterSteps(tracer)
        after.keep_files_apart = lambda: None

        class Batches:
            def __init__(self, name):
                self.left, self.loader = 40, Loader()
                after.made(self, self.loader)

            def __iter__(self):
                return self

            def give(self):
                self.left -= 1
                if self.left < 0:
                    raise StopIteration
                return 1

            def __next__(self):
                return after.next(self, lambda one: one.give())

        def forward(name):
            if after.began:
                after.forward(None, name == "train")
            assert model.training == (name == "train"), "an evaluation that was run ends as it began"
            log.append(name)

        def step():
            tracer.steps += 1
            if tracer.steps >= 3 and not after.begin():
                after.happens("subprocess.Popen", ())  # cuDNN is asked in a process
                raise Done

        class Model:
            training = True

            def modules(self):
                return [self]

            def eval(self):
                self.training = False

            def train(self):
                self.training = True

        model = Model()
        tracer.outermost.add(model)

        names = {"__name__": "loop", "Batches": Batches, "forward": forward, "step": step, "model": model}
        exec(compile(LOOP, path, "exec"), names)
        try:
            names["main"](accumulate)
            assert False, "the program came to its end"
        except Done:
            pass
        return log, notes

    audit, sys.addaudithook = sys.addaudithook, lambda hook: None
    try:
        for accumulate in (1, 4):
            for keeps in (False, True):
                train = ["train"] * accumulate
                log, notes = go(accumulate)
                more = ["within"] * 3 + ["<0>"] + train + ["<3>"]
                assert log == train * 3 + ["<3>"] + more * (1 + keeps) + ["epoch"] * 3 + ["seldom"] * 3 + ["<0>"] + train, (accumulate, keeps, log)
                assert notes == [("the evaluation that comes later was followed after the traced steps", shown_path(path) + ":19"),
                                 ("an evaluation that comes later was not followed to its end: it trains", shown_path(path) + ":21"),
                                 ("the evaluation that comes later was followed after the traced steps", shown_path(path) + ":24")], notes
    finally:
        sys.addaudithook = audit


# An iterator over validation gives what the program has; one that is kept for all epochs goes on behind validation.
def check_samples(folder):
    file = types.SimpleNamespace(storages=0, mark=lambda *args: None, site=lambda *args: 0, call=lambda *args: None, note=lambda *args: None)
    evaluates = [True]
    tracer = types.SimpleNamespace(file=file, allocated=0, steps=3, by_function=False, variant=None, began=0, operators=0, phase=FORWARD, torch=types.SimpleNamespace(Tensor=FakeTensor),
                                   compiling=False, capturing=False, evaluates=lambda: evaluates[0], trained_with=4, source=lambda: "here:1", finish=lambda *args: None,
                                   drop=None, there=lambda *args: {}, wanted={"BATCH": None, "DEADLINE": None, "SCRATCH": ""})
    after = tracer.after = AfterSteps(tracer)

    class Iterator:
        def __init__(self):
            self._sampler_iter = iter([list(range(at, at + 8)) for at in range(0, 800, 8)])

    class Loader:
        _cufit_order, _cufit_samples, _cufit_batch, drop_last = 0, 20, 8, False

    kept, loader = Iterator(), Loader()
    after.made(kept, loader)
    assert [len(indices) for indices in kept._sampler_iter] == [8, 8, 4]
    loader.drop_last = True
    kept = Iterator()
    after.made(kept, loader)
    assert [len(indices) for indices in kept._sampler_iter] == [8, 8]
    evaluates[0] = False
    training = Iterator()
    after.made(training, loader)
    assert len(list(training._sampler_iter)) == 100, "training is given enough for its steps"

    def ended(iterator):
        try:
            after.next(iterator, lambda _: "batch")
        except StopIteration:
            return True
        return False

    assert not ended(training)
    after.begin()
    assert ended(training) and ended(training)
    validation = Iterator()
    after.made(validation, Loader())
    assert not ended(validation) and not ended(training), "its next epoch"


with tempfile.TemporaryDirectory() as folder:
    check_samples(folder)
with tempfile.TemporaryDirectory() as folder:
    check_after_steps(folder)
with tempfile.TemporaryDirectory() as folder:
    check_loop(folder)
