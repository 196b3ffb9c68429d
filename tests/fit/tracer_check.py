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
    return types.SimpleNamespace(torch=torch, file=file, notes=notes, wanted={"BATCH": None, "BATCH_WAS": None, "STEPS": 3}, loaders=0, unreached={}, made_up=False,
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
    tracer = types.SimpleNamespace(file=file, allocated=0, steps=3, by_function=False, variant=None, began=time.monotonic(), phase=space["FORWARD"],
                                   compiling=False, trained_with=4, source=lambda: "here:1", finish=ends.append, drop=there.pop,
                                   there=lambda first, end: {number: size for number, size in there.items() if first <= number < end},
                                   wanted={"BATCH": None, "DEADLINE": None, "SCRATCH": folder})
    after = space["AfterSteps"](tracer)

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

    assert not after.begin(), "without a loader the trace ends with its steps"
    training, loader = Iterator(), Loader()
    after.made(training, loader)
    assert following(training) == "batch" and after.training_loader() is loader
    space["evaluate_soon"] = lambda: None
    import builtins
    before = builtins.open, os.mkdir, os.makedirs
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
    with open(os.path.join(folder, "..", "cufit-never-made")) as again:
        assert again.read() == "made up"
    assert not os.path.exists("/cufit-never-made")
    assert not ends and not os.path.exists(os.path.join(folder, "..", "cufit-never-made"))
    assert [name for name in os.listdir(folder) if name.startswith("written-")] == ["written-0"]
    builtins.open, os.mkdir, os.makedirs = before
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
    assert not after.begin(), "the trace ends behind that step"
    tracer.phase = space["OTHER"]
    after.forward(model, True)
    assert ends == [space["SEEN"]], ends


# The trace ends while the program stands in the first line of the loop in `train`, in its second round.
PROGRAM = """
class Model:
    def eval(self):
        log.append("eval")

class Trained:
    def step(self):
        pass
    backward = step

class Run:
    def check(self):
        model.eval()

def evaluate():
    model.eval()

def validate():
    return evaluate()

def penalty():
    model.eval()
    Trained().backward()

def train(epoch, batches):
    for step, batch in enumerate(batches, 1):
        if (step + 1) % 2 == 0:
            Trained().step()
            if step % every == 0:
                log.append(("nested", step, epoch))
                evaluate()
        if step % 100 == 0:
            log.append("prints")
        if step > 0 and step % int(every) == 0:
            validate()
            if step < 100:
                break
            log.append("behind a break")
        if debug and step % every == 0:
            log.append("switched off")
            evaluate()
        if step % 16 == 0:
            penalty()
        if step % 17 == 0:
            run.check()
            return
        if step % 7 == 0:
            model.eval()
            log.append(undefined)
        if wanted() and step % 9 == 0:
            log.append("asked the program")
            evaluate()
        if step == 7:
            log.append("once")
            evaluate()
        for other in range(0):
            if other % 2 == 0:
                log.append("of another loop")
                evaluate()

log, every, debug, model, run, asked = [], 500, False, Model(), Run(), []
wanted = lambda: asked.append(1) or True

def main(batches):
    for epoch in range(3):
        train(epoch, batches)
        if epoch % 5 == 4:
            log.append("each fifth epoch")
            evaluate()
        if epoch % 1 == 0:
            log.append("comes by itself")
            evaluate()
"""


def check_within_epoch(space, folder):
    path = os.path.join(folder, "program.py")
    with open(path, "w") as out:
        out.write(PROGRAM)
    told, failed, names = [], [], {"__name__": "program"}

    class Stop(Exception):
        pass

    class Batches:
        def __iter__(self):
            yield 1
            names["asked"].clear()  # the round so far was the program's own
            del names["log"][:]
            space["evaluate_within"](sys._getframe(1), lambda line: told.append(int(line.rpartition(":")[2])), lambda why, line: failed.append(why))
            raise Stop

    exec(compile(PROGRAM, path, "exec"), names)
    try:
        names["main"](Batches())
        assert False, "the loop was left"
    except Stop:
        pass
    lines = PROGRAM.split("\n")
    assert [lines[number - 1].strip() for number in told] == [
        "if step % every == 0:", "if step > 0 and step % int(every) == 0:", "if step % 17 == 0:", "if step % 7 == 0:", "if epoch % 5 == 4:"], told
    assert names["log"] == [("nested", 1, 0), "eval", "eval", "eval", "eval", "each fifth epoch", "eval"], names["log"]
    assert failed == ["NameError: name 'undefined' is not defined"], failed
    assert not names["asked"], "a condition of the program's was called"


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


space = parts("5_modules.py")
check_workers(space)
with tempfile.TemporaryDirectory() as folder:
    check_saving(space, folder)
with tempfile.TemporaryDirectory() as folder:
    check_after_steps(parts("1_event_file.py", "7_after_steps.py", "7_within_epoch.py"), folder)
with tempfile.TemporaryDirectory() as folder:
    check_within_epoch(parts("1_event_file.py", "7_within_epoch.py"), folder)
