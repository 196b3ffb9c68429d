# SPDX-License-Identifier: Apache-2.0
# What the tracer of `cufit fit` does with loaders, with what programs save and after the steps, on stand-ins for torch, numpy and
# safetensors.
# Run by tests/unit/host/fit_tracer_test.cc from the top folder; says what is wrong and ends with 1.
import os
import sys
import tempfile
import time
import types

PARTS = "src/host/fit/tracer/"


class Dataset:
    def __len__(self):
        return 3

    def __getitem__(self, index):
        return index


class WorkerInfo:
    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)


# As torch has it: a loader with workers would start processes.
class DataLoader:
    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None,
                 pin_memory=False, persistent_workers=False, worker_init_fn=None):
        assert not persistent_workers
        self.dataset, self.num_workers, self.collate_fn, self.worker_init_fn = dataset, num_workers, collate_fn, worker_init_fn

    def _get_iterator(self):
        assert self.num_workers == 0, "processes would be started"
        fetcher = types.SimpleNamespace(fetch=lambda indices: self.collate_fn([self.dataset[i] for i in indices]))
        return types.SimpleNamespace(_dataset_fetcher=fetcher)

    __iter__ = _get_iterator


class BatchSampler:
    def __init__(self, sampler, batch_size, drop_last):
        pass


class FakeTensor:
    shape, dtype = (2,), "float32"


def tracer_on(torch):
    notes = []
    file = types.SimpleNamespace(fact=lambda *args: None, note=lambda kind, detail, source: notes.append(detail))
    return types.SimpleNamespace(torch=torch, file=file, notes=notes, wanted={"BATCH": None, "BATCH_WAS": None, "STEPS": 3}, loaders=0, unreached={}, made_up=False, capturing=False, evaluates=lambda: False,
                                 trained_with=None, source=lambda: "here:1", lengths=lambda place: lambda batch: batch, FakeTensor=FakeTensor)


def parts(*names):
    space = {"__file__": PARTS, "os": os, "sys": sys, "_cufit_on_import": lambda *args: None}
    for name in names:
        with open(PARTS + name) as text:
            exec(compile(text.read(), name, "exec"), space)
    return space


# A training epoch ends early, three batches of validation are given, what each leaves is told, files go to the scratch folder.
def check_after_steps(space, folder):
    calls, marks, ends, there = [], [], [], {}
    file = types.SimpleNamespace(storages=0, mark=marks.append, site=lambda op, *rest: op, call=lambda site, numbers: calls.append((site, numbers)),
                                 note=lambda *args: None)
    tracer = types.SimpleNamespace(file=file, allocated=0, steps=3, by_function=False, variant=None, began=time.monotonic(), phase=space["FORWARD"], torch=types.SimpleNamespace(Tensor=FakeTensor),
                                   compiling=False, capturing=False, evaluates=lambda: False, trained_with=4, source=lambda: "here:1", finish=ends.append, drop=there.pop,
                                   there=lambda first, end: {number: size for number, size in there.items() if first <= number < end},
                                   wanted={"BATCH": None, "DEADLINE": None, "SCRATCH": folder})
    after = tracer.after = space["AfterSteps"](tracer)

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
    space["evaluate_soon"] = lambda: None
    import builtins
    before = builtins.open, os.mkdir, os.makedirs, os.listdir
    assert after.begin() and marks == [space["AFTER_STEPS"]] and tracer.phase == space["OTHER"]
    assert ended(training), "training would go on"

    model = types.SimpleNamespace()
    validation = Iterator()
    after.made(validation, loader)
    for batch in range(3):
        assert following(validation) == "batch", batch
        after.forward(model, False)
        assert tracer.phase == space["VALIDATION"]
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
    assert not ends and marks == [space["STEP_BEGINS"]] and tracer.phase == space["FORWARD"]
    after.forward(model, True)  # another module
    assert not ends and len(marks) == 1
    assert not after.begin() and after.left, "the trace ends behind that step"
    after.left = False
    tracer.phase = space["OTHER"]
    after.forward(model, True)
    assert ends == [space["SEEN"]], ends


# Whether `train` of PROGRAM stands in its loop and the lines below `if` are in it: what of them would be run.
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


def check_by_hand(space, folder):
    path = os.path.join(folder, "by_hand.py")
    text = PROGRAM[:PROGRAM.index("def train(batches)")] + BY_HAND
    with open(path, "w") as out:
        out.write(text)

    class Stop(Exception):
        pass

    def here():
        for line, run in space["evaluations_within"](sys._getframe(1), behind=True):
            if not line.startswith(os.path.relpath(path)):  # of this file, which calls
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


def check_within_epoch(space, folder):
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
                for line, lines in space["evaluations_within"](sys._getframe(1)):
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


def check_loop(space, folder):
    path = os.path.join(folder, "loop.py")
    with open(path, "w") as out:
        out.write(LOOP)
    space["evaluate_soon"] = lambda: None
    space["tensors_within"] = lambda torch, value: [value] if value == 1 and keeps else []

    class Done(BaseException):
        pass

    class Loader:
        _cufit_made = (8, "here:1")

    def go(accumulate):
        log, notes = [], []
        file = types.SimpleNamespace(storages=0, mark=lambda mark: log.append("<%d>" % mark), note=lambda kind, what, line: notes.append((what, line)))
        tracer = types.SimpleNamespace(file=file, allocated=0, steps=0, by_function=False, variant=None, began=time.monotonic(), phase=space["OTHER"], torch=types.SimpleNamespace(Tensor=FakeTensor),
                                       compiling=False, capturing=False, evaluates=lambda: False, trained_with=8, source=lambda: "here:1", modules=[], outermost=set(),
                                       wanted={"BATCH": None, "DEADLINE": None, "SCRATCH": ""})

        def finish(reason):
            assert False, "the trace ends twice"

        tracer.finish = finish
        after = tracer.after = space["AfterSteps"](tracer)
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
                assert notes == [("the evaluation that comes later was followed after the traced steps", os.path.relpath(path) + ":19"),
                                 ("an evaluation that comes later was not followed to its end: it trains", os.path.relpath(path) + ":21"),
                                 ("the evaluation that comes later was followed after the traced steps", os.path.relpath(path) + ":24")], notes
    finally:
        sys.addaudithook = audit


def stand_in():
    worker = types.SimpleNamespace(WorkerInfo=WorkerInfo, _worker_info=None)
    data = types.SimpleNamespace(DataLoader=DataLoader, BatchSampler=BatchSampler, Dataset=object, Sampler=Dataset, IterableDataset=type(None),
                                 _utils=types.SimpleNamespace(worker=worker))
    return types.SimpleNamespace(utils=types.SimpleNamespace(data=data), zeros=lambda shape, dtype: ("zeros", shape), save=None), worker


# sd-scripts hands its collate function no data set where it has workers: the worker's is taken.
def check_workers(space):
    torch, worker = stand_in()
    tracer = tracer_on(torch)
    space["patch_loaders"](tracer)
    dataset, seen = Dataset(), []

    def collate(samples):
        info = worker._worker_info
        seen.append(info and (info.id, info.num_workers, info.dataset is dataset))
        return samples

    begun = []
    loader = DataLoader(dataset, num_workers=8, collate_fn=collate, persistent_workers=True, worker_init_fn=begun.append)
    assert loader.num_workers == 8, "who makes a loader from it is told that it has no workers"
    loader._get_iterator()._dataset_fetcher.fetch([0, 1])
    assert seen == [(0, 1, True)], seen
    assert begun == [0], begun
    assert worker._worker_info is None and loader.num_workers == 8
    DataLoader(dataset, collate_fn=collate)._get_iterator()._dataset_fetcher.fetch([0])
    assert seen[1] is None, "without workers there is no worker"


def check_saving(space, folder):
    torch, _ = stand_in()
    tracer = tracer_on(torch)
    written = []

    def saved(file, *args, **kwargs):
        if hasattr(file, "write"):
            file.write(b"made up")
        else:
            written.append(file)

    numpy = types.SimpleNamespace(save=saved, savez=saved, savez_compressed=saved, load=lambda file, *args: file.read() if hasattr(file, "read") else "disk")
    space["keep_arrays"](tracer, numpy)
    real, made = os.path.join(folder, "real.npy"), os.path.join(folder, "made")
    numpy.save(real, 1)
    assert written == [real], "what the program reckons on the CPU is its own"
    tracer.made_up = True
    numpy.savez(made, latents=1)
    assert written == [real], "latents of zeros were written"
    assert numpy.load(made + ".npz") == b"made up" and numpy.load(real) == "disk"
    assert len(tracer.notes) == 1, tracer.notes

    files = []
    safetensors = types.SimpleNamespace(save=lambda tensors: tensors, save_file=lambda tensors, name: files.append(name))
    space["patch_safetensors"](tracer, safetensors)
    assert safetensors.save({"a": FakeTensor(), "b": 1}) == {"a": ("zeros", (2,)), "b": 1}
    safetensors.save_file({"b": 1}, "kept")
    safetensors.save_file({"a": FakeTensor(), "b": 1}, "empty")
    assert files == ["kept"], files


# How many numbers are drawn for what is not initialised, and when.
def check_draws(space):
    import contextlib
    drawn, seeded, float64 = [], object(), object()

    class Made:
        def __init__(self, count):
            self.random_ = lambda: drawn.append(count)
            self.normal_ = lambda: drawn.append("%d normal" % count)

    class Operator:
        tags = [seeded]

    uniform, normal = Operator(), Operator()
    random = types.SimpleNamespace(**{name: lambda *args: None for name in ("manual_seed", "seed", "set_rng_state", "get_rng_state")})
    torch = types.SimpleNamespace(
        random=random, manual_seed=random.manual_seed, float64=float64, uint8=None, Generator=Dataset, empty=lambda count, **kwargs: Made(count),
        Tag=types.SimpleNamespace(nondeterministic_seeded=seeded),
        ops=types.SimpleNamespace(aten=types.SimpleNamespace(uniform_=types.SimpleNamespace(default=uniform), normal_=types.SimpleNamespace(default=normal))),
        utils=types.SimpleNamespace(_python_dispatch=types.SimpleNamespace(_disable_current_modes=contextlib.nullcontext)))
    draws = space["Draws"](torch)

    def weight(count, kind=None, device="cpu"):
        return types.SimpleNamespace(numel=lambda: count, dtype=kind, device=types.SimpleNamespace(type=device))

    for what, tensor, args, count in (("kaiming_uniform_", weight(100), (5,), 100), ("normal_", weight(100), (), 116), (normal, weight(4096), (), 4096),
                                      (uniform, weight(100, float64), (), 200), ("orthogonal_", weight(32, float64), (), 64), ("zeros_", weight(100), (), 0),
                                      ("uniform_", weight(100, device="cuda"), (), 0), ("uniform_", weight(100), (0, 1, Dataset()), 0)):
        draws.left = 0
        draws.skipped(what, tensor, *args)
        assert draws.left == count, (what, draws.left)
    draws.left = 7
    draws.real(types.SimpleNamespace(tags=[]))
    assert not drawn, "only before a number that counts"
    draws.real(uniform)
    assert drawn == [7] and draws.left == 0
    draws.left = draws.AT_ONCE + 3
    draws.skipped("normal_", weight(9))
    assert drawn[1:] == [draws.AT_ONCE, 3, "9 normal"], "in the order of the program"
    draws.left = 5
    torch.manual_seed(1)
    assert draws.left == 0 and len(drawn) == 4, "a seed begins anew"
    draws.left, draws.seconds = 5, 0
    random.get_rng_state()
    assert draws.left == 0 and len(drawn) == 4, "there is an end to it"


# Which batches are fetched and told of.
def check_later_batches(space):
    class Tensor:
        def __init__(self, *shape):
            self.shape = shape

    class Iterator:
        def __init__(self, samples, lengths):
            self._cufit_from, self.left = (0, samples, 4), [Tensor(4, length) for length in lengths]

    class OnGpu(Tensor, FakeTensor):
        pass

    def run(samples, lengths, steps, first=None, second=()):
        calls = []
        file = types.SimpleNamespace(site=lambda op, *rest: op, call=lambda op, numbers: calls.append((op.split("_")[1], *numbers)))
        tracer = types.SimpleNamespace(torch=types.SimpleNamespace(Tensor=Tensor), FakeTensor=FakeTensor, file=file, phase=0, wanted={"DEADLINE": None},
                                       after=types.SimpleNamespace(began=False))
        later, give = space["LaterBatches"](tracer), lambda iterator: iterator.left.pop(0)
        one = Iterator(samples, lengths)
        for _ in range(steps):
            later.safely(later.saw, one, first(*give(one).shape) if first else give(one))
        later.safely(later.tell, [one], 1, give)
        tracer.after.began = True
        kept = later.left(Iterator(samples, [])), later.left(one), later.left(one)
        other = Iterator(samples, second)
        if second:
            later.safely(later.saw, other, give(other))
        later.safely(later.tell_next, other if second else None, give)
        return calls, kept

    calls, kept = run(22, [7, 9, 8, 6, 5, 3, 2], 2, second=[11, 12, 13, 14, 15, 16])
    assert calls == [("given", 4, 7), ("given", 4, 9), ("to", 4, 8), ("to", 4, 6), ("to", 4, 5), ("to", 4, 11), ("to", 4, 12), ("to", 4, 13), ("to", 4, 14),
                     ("to", 4, 15)], calls  # of two epochs what fills a batch
    assert kept[0] is None and kept[1].shape == (4, 8) and kept[2] is None, "one for a step more, of the same iterator"
    assert run(22, [7, 7, 8, 6, 5], 2)[0] == [], "all traced ones are of one size"
    assert run(None, [7, 9, 8, 6, 5], 2)[0] == [("given", 4, 7), ("given", 4, 9)], "data without a length waits, perhaps"
    assert run(22, [7, 9, 8], 2, first=OnGpu)[0] == [], "on the GPU"
    assert run(22, [7, 9, 8], 2, first=lambda batch, length: [[Tensor(length)] * 40])[0] == [], "too many to tell what decides"


# Which optimizers make a step, by the order in which they step.
def check_rounds(space):
    class Tracer(space["Tracer"]):
        def __init__(self, optimizers):
            self.made, self.optimizers = optimizers, len(optimizers)
            self.first_round, self.round, self.stepped, self.again = [], None, set(), 0
            self.after, self.by_function, self.by_hand, self.began = types.SimpleNamespace(running=False), False, None, time.monotonic()
            self.ended = 0

        def step_ends(self):
            self.ended += 1

    class Optimizer:
        def __init__(self, *parameters):
            self.param_groups = [{"params": parameters}]

    a, b = object(), object()
    critic, generator, idle, outer = Optimizer(a), Optimizer(b), Optimizer(b), Optimizer(a)
    gan = Tracer([critic, generator])
    ends = []
    for step in range(1, 16):  # the generator's at every fifth
        gan.optimizer_steps(id(critic))
        if step % 5 == 0:
            gan.optimizer_steps(id(generator))
        ends.append(gan.ended)
    assert ends == [0] * 5 + [1] * 4 + [2] * 5 + [3], ends
    lonely = Tracer([critic, idle])
    for _ in range(lonely.MOST_AGAIN):
        lonely.optimizer_steps(id(critic))
    assert lonely.ended == 0 and lonely.one_never_stepped()
    lonely.optimizer_steps(id(critic))
    assert lonely.ended == 1, "one that never steps is not waited for, and no step is empty"
    lonely.optimizer_steps(id(critic))
    assert lonely.ended == 2
    handing_on = Tracer([outer, critic])
    for _ in range(3):
        handing_on.optimizer_steps(id(critic))
    assert handing_on.ended == 2 and not handing_on.one_never_stepped(), "the outer one has the same parameters"


# An iterator over validation gives what the program has; one that is kept for all epochs goes on behind validation.
def check_samples(space, folder):
    file = types.SimpleNamespace(storages=0, mark=lambda *args: None, site=lambda *args: 0, call=lambda *args: None, note=lambda *args: None)
    evaluates = [True]
    tracer = types.SimpleNamespace(file=file, allocated=0, steps=3, by_function=False, variant=None, began=time.monotonic(), phase=space["FORWARD"], torch=types.SimpleNamespace(Tensor=FakeTensor),
                                   compiling=False, capturing=False, evaluates=lambda: evaluates[0], trained_with=4, source=lambda: "here:1", finish=lambda *args: None,
                                   drop=None, there=lambda *args: {}, wanted={"BATCH": None, "DEADLINE": None, "SCRATCH": ""})
    space["evaluate_soon"] = lambda: None
    after = tracer.after = space["AfterSteps"](tracer)

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


space = parts("5_modules.py")
check_workers(space)
check_rounds(parts("1_event_file.py", "2_tracer.py"))
with tempfile.TemporaryDirectory() as folder:
    check_samples(parts("1_event_file.py", "7_after_steps.py", "7_later_batches.py", "7_within_epoch.py"), folder)
check_draws(parts("1_event_file.py", "3_draws.py"))
check_later_batches(parts("1_event_file.py", "2_tracer.py", "7_later_batches.py"))
with tempfile.TemporaryDirectory() as folder:
    check_saving(parts("5_saving.py"), folder)
with tempfile.TemporaryDirectory() as folder:
    check_after_steps(parts("1_event_file.py", "7_after_steps.py", "7_later_batches.py", "7_within_epoch.py"), folder)
with tempfile.TemporaryDirectory() as folder:
    check_within_epoch(parts("1_event_file.py", "7_within_epoch.py"), folder)
    check_by_hand(parts("1_event_file.py", "7_within_epoch.py"), folder)
with tempfile.TemporaryDirectory() as folder:
    check_loop(parts("1_event_file.py", "7_after_steps.py", "7_later_batches.py", "7_within_epoch.py"), folder)
