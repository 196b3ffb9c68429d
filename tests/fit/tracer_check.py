# SPDX-License-Identifier: Apache-2.0
# What the tracer of `cufit fit` does with loaders, random draws, batches to come, several optimizers and what programs save, on
# stand-ins for torch, numpy and safetensors.
# Run by tests/unit/host/python/fit_tracer_test.cc from the top folder; says what is wrong and ends with 1.
import os
import sys
import tempfile
import types

from stand_ins import Dataset, WorkerInfo, DataLoader, BatchSampler, FakeTensor, tracer_on

from cufit_tracer import user_files
from cufit_tracer.ops import random_ops
from cufit_tracer.ops.random_ops import Draws
from cufit_tracer.program.arrays import keep_arrays
from cufit_tracer.program.saving import patch_safetensors
from cufit_tracer.steps.later_batches import LaterBatches
from cufit_tracer.steps.loaders import patch_loaders
from cufit_tracer.tracer import Tracer as RealTracer


def stand_in():
    worker = types.SimpleNamespace(WorkerInfo=WorkerInfo, _worker_info=None)
    data = types.SimpleNamespace(DataLoader=DataLoader, BatchSampler=BatchSampler, Dataset=object, Sampler=Dataset, IterableDataset=type(None),
                                 _utils=types.SimpleNamespace(worker=worker))
    return types.SimpleNamespace(utils=types.SimpleNamespace(data=data), zeros=lambda shape, dtype: ("zeros", shape), save=None), worker


# sd-scripts hands its collate function no data set where it has workers: the worker's is taken.


def check_workers():
    torch, worker = stand_in()
    tracer = tracer_on(torch)
    patch_loaders(tracer)
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
    # With workers torch asks for the order of batches twice an epoch, once where they persist and work already.
    class Order:
        asked = 0

        def __iter__(self):
            self.asked += 1
            return iter(())

    for workers, persists, epochs in ((0, False, [1, 2, 3]), (2, False, [2, 4, 6]), (2, True, [2, 3, 4])):
        loader, asked = DataLoader(dataset, num_workers=workers, collate_fn=collate, persistent_workers=persists), []
        loader.order = Order()
        for _ in range(3):
            loader._get_iterator()
            asked.append(loader.order.asked)
        assert asked == epochs, asked
    DataLoader(dataset, collate_fn=collate)._get_iterator()._dataset_fetcher.fetch([0])
    assert seen[1] is None, "without workers there is no worker"


def check_saving(folder):
    torch, _ = stand_in()
    tracer = tracer_on(torch)
    written = []

    def saved(file, *args, **kwargs):
        if hasattr(file, "write"):
            file.write(b"made up")
        else:
            written.append(file)

    numpy = types.SimpleNamespace(save=saved, savez=saved, savez_compressed=saved, load=lambda file, *args: file.read() if hasattr(file, "read") else "disk")
    keep_arrays(tracer, numpy)
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
    patch_safetensors(tracer, safetensors)
    assert safetensors.save({"a": FakeTensor(), "b": 1}) == {"a": ("zeros", (2,)), "b": 1}
    safetensors.save_file({"b": 1}, "kept")
    safetensors.save_file({"a": FakeTensor(), "b": 1}, "empty")
    assert files == ["kept"], files


# How many numbers are drawn for what is not initialised, and when.


def check_draws():
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
    draws = Draws(torch)

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
    draws.left = draws.DRAWN
    draws.skipped("normal_", weight(9))
    assert drawn[1:] == [draws.DRAWN, "9 normal"], "in the order of the program"
    jumps, random_ops.jump = [], lambda torch, count: jumps.append(count)
    draws.left = draws.DRAWN + 1
    draws.real(uniform)
    assert jumps == [draws.DRAWN + 1] and len(drawn) == 3, "more than that is a jump"
    draws.left = 5
    torch.manual_seed(1)
    assert draws.left == 0 and len(drawn) == 3, "a seed begins anew"
    draws.left = 5
    random.get_rng_state()
    assert drawn[3:] == [5], "a state that is read is the one behind what was drawn"


# Which batches are fetched and told of.


def check_later_batches():
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
        later, give = LaterBatches(tracer), lambda iterator: iterator.left.pop(0)
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
def check_rounds():
    class Tracer(RealTracer):
        def __init__(self, optimizers):
            self.made, self.optimizers = optimizers, len(optimizers)
            self.first_round, self.round, self.stepped, self.again = [], None, set(), 0
            self.after, self.by_function, self.by_hand, self.began = types.SimpleNamespace(running=False), False, None, 0
            self.operators, self.parts, self.phase = 0, None, 0
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
    parted = Tracer([critic])
    with parted.one_step(counts=False):
        parted.optimizer_steps(id(critic))
        parted.phase = 1
    assert parted.ended == 0 and parted.phase == 0, "it made its states alone"
    for _ in range(2):
        with parted.one_step():
            for _ in range(3):
                parted.optimizer_steps(id(critic))
    assert parted.ended == 2, "one for each, whatever its parts"


# `pip install --target` on PYTHONPATH is no place of the user's, the program's own folder is one.
def check_places(folder):
    packages, project = os.path.join(folder, "packages"), os.path.join(folder, "project")
    for place in (packages, project):
        os.makedirs(os.path.join(place, "torchaudio-2.11.0.dist-info"))
    before = sys.argv[0], os.environ.get("PYTHONPATH")
    sys.argv[0] = os.path.join(project, "train.py")
    os.environ["PYTHONPATH"] = os.pathsep.join((packages, project, "", os.path.join(folder, "missing")))
    try:
        assert list(user_files.packages_on_path()) == [packages + os.sep]
        assert user_files.shown_path(os.path.join(project, "lib", "net.py")) == os.path.join("lib", "net.py")
        assert user_files.shown_path(os.path.join(folder, "other", "net.py")) == os.path.join(folder, "other", "net.py")
        assert user_files.shown_path(os.path.abspath("net.py")) == "net.py"
    finally:
        sys.argv[0] = before[0]
        os.environ["PYTHONPATH"] = before[1] or ""


check_workers()
check_rounds()
check_draws()
check_later_batches()
with tempfile.TemporaryDirectory() as folder:
    check_saving(folder)
    check_places(folder)
