# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of programs/ under the tracer."""

import os
import shutil
import subprocess
import tempfile
import unittest

from events import Trace

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "programs")
DEALT = {"fsdp-2": ("fsdp", 0, 2), "fsdp-4": ("fsdp", 0, 4), "ddp-4": ("ddp", 0, 4)}
DEALT["tp-4"] = ("tp", 2, 4)
# Where packages are that the tests' own environment does not have.
PACKAGES = [folder for folder in os.environ.get("CUFIT_TEST_PACKAGES", "").split(":") if folder]
SHARDED = ("fsdp1", "fsdp2", "kept", "meta", "hybrid", "offloaded", "tensor")
H200 = "NVIDIA H200,9.0,150110011392"
TORCHRUN = ["torch.distributed.run"]
# Each: program, arguments, settings.
RUNS = {
    "mlp-sgd": ("mlp.py", ["sgd"], {}),
    "mlp-adamw": ("mlp.py", ["adamw"], {}),
    "mlp-fused": ("mlp.py", ["fused"], {}),
    "attention": ("attention.py", [], {}),
    "convolutions": ("convolutions.py", [], {}),
    "embedding": ("embedding.py", [], {}),
    "lora-plan": ("lora.py", [], {"VARIANT": "plan"}),
    "frozen": ("frozen.py", [], {}),
    "threads": ("threads.py", [], {}),
    "compiled": ("compiled.py", [], {}),
    "sparse": ("sparse.py", [], {}),
    "sparse-gradients": ("sparse_gradients.py", [], {}),
    "grouped": ("grouped.py", [], {}),
    "pinned": ("pinned.py", [], {}),
    "loader": ("loader.py", [], {"BATCH": "24"}),
    "distributed": ("distributed.py", [], {}),
    "two-ranks": ("two_ranks.py", [], {}),
    "two-ranks-static": ("two_ranks.py", ["static"], {}),
    "torchrun-2": ("-m", [*TORCHRUN, "--nproc_per_node", "2", "ranks.py"], {}),
    "torchrun-64": (
        "-m",
        [*TORCHRUN, "--nnodes", "8", "--nproc_per_node", "8", "--node_rank", "3", "ranks.py"],
        {"RANK": "last"},
    ),
    "launch-8": ("-m", ["torch.distributed.launch", "--nproc_per_node", "8", "ranks.py"], {}),
    "spawn-8": ("ranks.py", ["spawn"], {"WORLD": "8", "RANK": "last"}),
    "processes-2": ("ranks.py", ["processes"], {"WORLD": "2", "RANK": "last"}),
    "asked-64": ("ranks.py", [], {"WORLD": "64"}),
    "checkpointed": ("checkpointed.py", [], {}),
    "saving": ("saving.py", [], {}),
    "devices": ("devices.py", [], {}),
    "made-anew": ("made_anew.py", [], {}),
    "repeated": ("repeated.py", [], {}),
    "subclass": ("subclass.py", [], {}),
    "recurrent": ("recurrent.py", [], {}),
    "device_draws": ("device_draws.py", [], {}),
    "sorting": ("sorting.py", [], {}),
    "inplace": ("inplace.py", [], {}),
    "streams": ("streams.py", [], {}),
    "graphs": ("graphs.py", [], {}),
    "graph-pools": ("graph_pools.py", [], {}),
    "gan": ("gan.py", [], {}),
    "older_names": ("older_names.py", [], {}),
    "lengths": ("lengths.py", [], {"SEQ": "48"}),
    "drawn": ("drawn.py", [], {}),
    "drawn-shown": ("drawn.py", ["--shown"], {}),
    "varied-objects": ("varied.py", ["objects"], {}),
    "varied-sampler": ("varied.py", ["sampler"], {}),
    "varied-packed": ("varied.py", ["packed"], {}),
    "varied-fed": ("varied.py", ["fed"], {}),
    "by_hand": ("by_hand.py", [], {}),
    "any-length": ("of_any_length.py", [], {}),
    "any-length-hurried": ("of_any_length.py", ["hurried"], {}),
    "waiting": ("waiting.py", ["sleep"], {"IDLE": "15"}),
    "waiting-busily": ("waiting.py", ["work"], {"IDLE": "15"}),
    "memory-efficient": ("memory_efficient.py", [], {}),
    "modes": ("modes.py", [], {}),
    "rules": ("rules.py", [], {}),
    "frozen-product": ("frozen_product.py", [], {}),
    "masks": ("masks.py", [], {}),
    "unknown": ("unknown.py", [], {}),
    "failing": ("failing.py", [], {}),
    "episodes": ("episodes.py", [], {}),
    "function": (None, [], {"FUNCTION": "steps:make_step", "BATCH": "8"}),
}
# Of sharding_test.py.
RUNS_OF_RANKS = {
    "worlds": ("worlds.py", [], {"STEPS": "1000"}),
    "recorded": ("recorded.py", ["600"], {"STEPS": "6"}),
    "exchanged": ("exchanged.py", [], {}),
    "zero-2": ("zero.py", ["2"], {}),
    "zero-3": ("zero.py", ["3"], {}),
    "zero-pipe-0": ("zero_pipe.py", ["0"], {}),
    "zero-pipe-1": ("zero_pipe.py", ["1"], {}),
    **{"told-%d" % rank: ("told.py", [str(rank)], {}) for rank in (0, 1, 3)},
    "stage-0": ("stage.py", ["0"], {}),
    "stage-1": ("stage.py", ["1"], {}),
    **{how: ("sharded.py", [how, "3", "4"], {}) for how in SHARDED},
    "tensor": ("sharded.py", ["tensor", "1", "2"], {}),  # even parts alone
    "copies-fsdp": ("copies.py", [], {"WORLD": "4", "RANK": "last", "VARIANT": "plan,fsdp"}),
    "copies-zero1": ("copies.py", [], {"WORLD": "4", "VARIANT": "plan,zero1"}),
    **{
        "model-" + name: (
            "dealt_model.py",
            [how, str(degree)],
            {"WORLD": str(world), "RANK": "last"},
        )
        for name, (how, degree, world) in DEALT.items()
    },
}


class Ran:
    def __init__(self, done, events):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.trace = events and Trace(events)


class Runner:
    def __init__(self, build):
        self.python = os.path.join(build, "torch", "bin", "python")
        self.folder = tempfile.mkdtemp(prefix="cufit-fit-")
        self.sent = os.path.join(self.folder, "sent")
        os.mkdir(self.sent)
        generated = os.path.join(build, "generated")
        shutil.copy(
            os.path.join(generated, "cufit_tracer.py"),
            os.path.join(self.folder, "sitecustomize.py"),
        )
        subprocess.run(
            [
                "cc",
                "-shared",
                "-fPIC",
                "-O2",
                "-nostdlib",
                "-o",
                os.path.join(self.folder, "no_accelerator.so"),
                os.path.join(HERE, "..", "..", "src", "host", "python", "no_accelerator.c"),
            ],
            check=True,
        )

    def run(self, name):
        program, arguments, settings = RUNS.get(name) or RUNS_OF_RANKS[name]
        program = program or os.path.join(self.folder, "sitecustomize.py")
        events = os.path.join(self.folder, name + ".events")
        scratch = os.path.join(self.folder, name + ".scratch")
        os.mkdir(scratch)
        variables = {
            key: value for key, value in os.environ.items() if not key.startswith("CUFIT_")
        }
        variables.update(
            PYTHONPATH=os.pathsep.join([self.folder, *PACKAGES]),
            CUFIT_FIT_OUT=events,
            CUFIT_FIT_SCRATCH=scratch,
            CUFIT_FIT_SENT=self.sent,
            CUFIT_FIT_STEPS="3",
            CUFIT_FIT_GPU=H200,
            OMP_NUM_THREADS="1",
        )
        variables.update(("CUFIT_FIT_" + key, value) for key, value in settings.items())
        done = subprocess.run(
            [self.python, program, *arguments],
            cwd=PROGRAMS,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
        )
        data = b""
        if os.path.exists(events):
            with open(events, "rb") as file:
                data = file.read()
        return Ran(done, data)


class All(dict):
    """What each program did; one that has not run yet is run when it is asked for."""

    runner = None

    def __missing__(self, name):
        self[name] = self.runner.run(name)
        return self[name]


ran = All()


class TracerTest(unittest.TestCase):
    maxDiff = None

    def trace(self, name, code=0):
        one = ran[name]
        self.assertEqual(one.code, code, one.err)
        return one.trace
