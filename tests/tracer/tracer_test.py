#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tracer of `cufit fit` under a real PyTorch on the CPU: small programs (programs/) run as they
would under cufit, and what the tracer writes is compared with what follows from their sizes, and
with what it wrote before (expected/).

tracer_test.py BUILD [TEST...]: the tracer is BUILD/generated/cufit_tracer.py, PyTorch that of
BUILD/torch (tools/fetch-torch). UPDATE_GOLDEN=1 writes expected/ anew. Ends with 77 where there is
no PyTorch."""

import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import unittest

from before_steps import BeforeSteps  # noqa: F401
from behind_steps import BehindSteps  # noqa: F401
from gradient_buckets import GradientBuckets  # noqa: F401
from graph_laws import Graphs  # noqa: F401
from known_laws import EventFiles, Kept, Known  # noqa: F401
from launcher_laws import Devices, Launchers  # noqa: F401
from mask_laws import Frozen, Masks  # noqa: F401
from runs import RUNS, Runner, TracerTest, ran
from told_facts import ToldFacts  # noqa: F401
from varying_batches import DrawnSizes, VaryingBatches  # noqa: F401

HERE = os.path.dirname(os.path.abspath(__file__))
EXPECTED = os.path.join(HERE, "expected")
VERSION = "2.11.0"  # of expected/
# Whose notes hold names made at random; whose traces are long, or end at another operator each
# time.
WITHOUT_GOLDEN = {"saving", "any-length", "any-length-hurried", "waiting", "waiting-busily"}
WITHOUT_GOLDEN |= {"threads", "sparse-gradients", "unknown", "checkpointed"}
WITHOUT_GOLDEN |= {"graph-pools"}  # what Python still releases at its end
WITHOUT_GOLDEN |= {
    name for name, run in RUNS.items() if {"ranks.py", "varied.py", "drawn.py"} & {run[0], *run[1]}
}

# BATCH, INSIDE, HIDDEN, OUTSIDE of programs/mlp.py.
B, I, H, O = 32, 256, 512, 128  # noqa: E741
FLOAT = 4


class Mlp(TracerTest):
    parameters = (I * H + H + H * O + O) * FLOAT

    def test_parameters_and_gradients_are_told(self):
        trace = self.trace("mlp-sgd")
        self.assertEqual(trace.bytes_of("parameter"), self.parameters)
        self.assertEqual(
            trace.bytes_of("gradient"), 3 * self.parameters
        )  # of three steps and none behind
        self.assertEqual(trace.bytes_of("optimizer state"), 0)

    def test_parameters_made_anew_by_their_class_are_told(self):
        self.assertEqual(self.trace("made-anew").bytes_of("parameter"), self.parameters)

    def test_adamw_keeps_two_states_for_each_value(self):
        self.assertEqual(self.trace("mlp-adamw").bytes_of("optimizer state"), 2 * self.parameters)
        # The fused one keeps its steps on the GPU, one number for each of the four parameters.
        self.assertEqual(
            self.trace("mlp-fused").bytes_of("optimizer state"), 2 * self.parameters + 4 * FLOAT
        )

    def test_forward_makes_what_backward_needs(self):
        trace = self.trace("mlp-sgd")
        first = [
            s.size
            for s in trace.storages
            if s.site.phase == "forward" and s.site.module in ("0", "1", "2", "3")
        ][:5]
        # The first product, gelu, dropout's mask (made first) and its values, the second product.
        self.assertEqual(first, [B * H * FLOAT, B * H * FLOAT, B * H, B * H * FLOAT, B * O * FLOAT])

    def test_a_step_ends_as_it_began(self):
        trace = self.trace("mlp-sgd")
        held = [sum(s.size for s in alive) for alive in trace.alive_at("step ends")]
        self.assertEqual(len(held), 3)
        self.assertEqual(held[0], held[1], "nothing grows from step to step")
        weights = [s for s in trace.alive_at("step begins")[0] if s.category == "parameter"]
        self.assertEqual(sum(s.size for s in weights), self.parameters)

    def test_products_are_told_with_their_shapes(self):
        forward = self.trace("mlp-sgd").calls_of("matmul_bias")[:2]
        self.assertEqual([numbers[3:] for numbers in forward], [[B, H, I], [B, O, H]])


class Memory(TracerTest):
    def test_in_place_takes_nothing_and_what_is_dropped_is_given_back(self):
        trace = self.trace("inplace")  # the program asserts what torch.cuda.memory_allocated() says
        self.assertEqual(trace.end, "ended")
        # A mebibyte each: the leaf and its gradient; the second pass leaves nothing more.
        self.assertEqual(ran["inplace"].out.split()[-1], str(2 << 20))
        self.assertFalse(trace.sizes("add_") + trace.sizes("relu_") + trace.sizes("mul_"))

    def test_sums_of_gradients_are_made_in_place(self):
        adds = [
            s
            for s in self.trace("inplace").storages
            if s.site.op == "add" and s.site.phase == "backward"
        ]
        self.assertEqual(adds, [], "autograd adds to a gradient that nobody else holds")

    def test_pinned_memory_is_the_hosts(self):
        trace = self.trace("pinned")
        self.assertEqual(
            ran["pinned"].out.splitlines(), ["cpu cpu False cpu"] + ["0.0 3.0"] * 3 + ["True False"]
        )
        on_device = [s.size for s in trace.storages if s.site.phase == "setup"]
        weight, bias = (1 << 12) * 8 * FLOAT, 8 * FLOAT
        copies = [s for s in trace.storages if s.category == "input"]
        self.assertEqual({s.size for s in copies}, {(1 << 12) * FLOAT})
        # Weights and the first copy of the batch; none of the five that are pinned.
        self.assertEqual(on_device, [weight, bias, (1 << 12) * FLOAT])
        self.assertNotIn((1 << 16) * FLOAT, [s.size for s in trace.storages])
        self.assertNotIn((1 << 14) * FLOAT, [s.size for s in trace.storages])

    def test_long_rows_are_sorted_by_parts(self):
        trace = self.trace("sorting")
        line = next(s.site.source for s in trace.storages if s.site.op == "sort")
        temporary = trace.sizes("temporary", source=line)
        # None for rows of 4,096; keys and places of 300 rows of 4,097; of few rows two more copies.
        many, few = 300 * 4097, 4 * 70000
        self.assertEqual(temporary, [many * 8, many * 12, few * 8, few * 12, few * 8, few * 4])

    def test_products_of_groups_lie_in_whole_16_bytes(self):
        self.trace("grouped")
        self.assertEqual(
            ran["grouped"].out.splitlines(),
            ["(64, 24) (24, 1)", "(64, 20) (24, 1)", "(64, 20) (20, 1)"],
        )
        sizes = self.trace("grouped").sizes("_grouped_mm") + self.trace("grouped").sizes(
            "new_empty_strided"
        )
        self.assertEqual(sizes, [64 * 24 * 2, (63 * 24 + 20) * 2, 64 * 20 * FLOAT])


class Kernels(TracerTest):
    def test_attention_picks_its_kernel(self):
        kinds = [numbers[0] for numbers in self.trace("attention").calls_of("sdpa")]
        # cuDNN's in bf16 on an H200, the memory-efficient one and the plain products in fp32.
        self.assertIn(2, kinds)
        self.assertIn(10, kinds, "its backward")
        self.assertIn(1, kinds)
        self.assertNotIn(0, kinds)

    def test_convolutions_are_told_with_their_gradients(self):
        trace = self.trace("convolutions")
        forward, data, weights = (trace.calls_of(op) for op in ("conv", "conv_dgrad", "conv_wgrad"))
        self.assertEqual(len(forward), len(weights))
        # The gradient of a picture is wanted by nobody: one less for each of the four steps.
        self.assertEqual(len(data), len(weights) - 4)
        self.assertEqual({numbers[6] for numbers in forward}, {0, 1}, "channels first and last")

    def test_recurrent_layers_keep_a_reserve(self):
        calls = self.trace("recurrent").calls_of("rnn")
        backward = [numbers for numbers in calls if numbers[12]]
        self.assertEqual(len(calls), 3 * len(backward) // 2 + len(calls) - 3 * len(backward) // 2)
        self.assertEqual({numbers[1] for numbers in calls}, {2, 3}, "LSTM and GRU")
        self.assertIn(6488064, self.trace("recurrent").sizes("empty"), "the state of dropout")

    # All places and all values, one behind the other: 8 bytes each, and 16 values of 4.
    def test_sparse_gradients_of_two_uses_are_joined(self):
        joined = self.trace("sparse-gradients").sizes("cat", phase="backward")
        self.assertEqual(sorted(set(joined)), [(300 + 500) * 8, (300 + 500) * 16 * FLOAT])

    def test_sums_of_norms_over_many_rows(self):
        trace = self.trace("embedding")
        parts = -(-70000 // 32)
        self.assertIn([parts, 96], trace.calls_of("reduce_rows"))
        self.assertIn(parts * 96 * FLOAT, trace.sizes("native_layer_norm_backward"))


class Programs(TracerTest):
    def test_the_batch_size_that_is_asked_for_is_given(self):
        trace = self.trace("loader")
        self.assertEqual((trace.facts["batch_found"], trace.facts["batch"]), ("8", "24"))
        pictures = [
            s.size for s in trace.storages if s.category == "input" and s.site.phase != "validation"
        ]
        self.assertIn(24 * 3 * 16 * 16 * FLOAT, pictures)
        self.assertTrue(
            any("was followed" in said for _, said, _ in trace.notes),
            "the evaluation at every hundredth step",
        )
        self.assertIn("after the steps", [mark for mark, _ in trace.marks])
        kept = trace.calls_of("kept_of_each_batch")
        self.assertEqual(kept[0], [40, 24, 24 * 10 * FLOAT])

    def test_sequences_have_the_length_that_is_asked_for(self):
        trace = self.trace("lengths")
        self.assertIn(4 * 48 * 8, [s.size for s in trace.storages if s.category == "input"])

    def test_a_function_makes_its_steps(self):
        trace = self.trace("function")
        self.assertEqual(trace.facts["batch_from"], "function")
        self.assertEqual([mark for mark, _ in trace.marks].count("step ends"), 3)
        self.assertIn(8 * 16 * 8, trace.sizes("randint"))

    def test_what_is_saved_comes_back(self):
        lines = ran["saving"].out.splitlines()
        self.assertEqual(lines, ["%d (512, 512) False" % step for step in range(3)])
        said = [said for _, said, _ in self.trace("saving").notes if "was not done" in said]
        self.assertTrue(any("best.pt" in one for one in said), said)
        self.assertTrue(any("last.pt" in one for one in said), said)  # of a pathlib.Path

    def test_a_failing_program_is_told_by_its_line(self):
        trace = self.trace("failing", code=1)
        self.assertEqual(trace.end, "failed")
        self.assertIn(("error", "ValueError: the user's own mistake", "failing.py:10"), trace.notes)
        self.assertIn("the user's own mistake", ran["failing"].err)
        read = [place for kind, _, place in trace.notes if kind == "data_dependent"]
        self.assertEqual(read, ["failing.py:7", "failing.py:9"])

    def test_lines_are_the_programs_own(self):
        for name in RUNS:
            sources = {s.site.source for s in ran[name].trace.storages}
            for source in sources - {""}:
                self.assertRegex(source, r"^[a-z_]+\.py:\d+$", name)


class Budgets(TracerTest):
    """The work of a trace is bounded, and never its time."""

    def test_a_busy_machine_gets_the_same_trace(self):
        trace = self.trace("any-length")
        self.assertTrue(any(kind == "sizes_vary" for kind, _, _ in trace.notes))
        to_come = [site for site, _ in trace.calls if site.op == "batch_to_come"]
        self.assertGreaterEqual(len(to_come), 100)
        self.assertEqual(trace.lines, self.trace("any-length-hurried").lines)

    def test_a_jump_is_as_many_draws(self):
        done = subprocess.run(
            [ran.runner.python, "-B", os.path.join(HERE, "jumps.py")],
            env={"PYTHONPATH": os.path.join(HERE, "..", "..", "python", "cufit_tracer")},
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_waits_is_stopped_and_what_works_is_not(self):
        waiting = self.trace("waiting", code=3)
        self.assertIn(("timed_out", "", "waiting.py:13"), waiting.notes)
        self.assertEqual(waiting.facts["stopped_by"], "idle")
        self.assertEqual(self.trace("waiting-busily").end, "seen")


class Goldens(TracerTest):
    def test_nothing_has_changed(self):
        for name in sorted(set(RUNS) - WITHOUT_GOLDEN):
            with self.subTest(name):
                trace = ran[name].trace
                if not trace.facts.get("torch", "").startswith(VERSION):
                    self.skipTest("expected/ is of torch " + VERSION)
                text = (
                    "\n".join(line for line in trace.lines if not line.startswith("fact python"))
                    + "\n"
                )
                text = re.sub(r" at 0x[0-9a-f]+", "", text)
                path = os.path.join(EXPECTED, name + ".txt")
                if os.environ.get("UPDATE_GOLDEN"):
                    os.makedirs(EXPECTED, exist_ok=True)
                    with open(path, "w") as out:
                        out.write(text)
                with open(path) as file:
                    self.assertEqual(file.read(), text)


def main(build, names):
    if not os.path.exists(os.path.join(build, "torch", "bin", "python")):
        print("skipped: no PyTorch in %s/torch; `make test-tracer` fetches it (550 MB)" % build)
        return 77
    ran.runner = Runner(build)
    load = unittest.defaultTestLoader
    here = sys.modules[__name__]
    suite = load.loadTestsFromNames(names, here) if names else load.loadTestsFromModule(here)
    try:
        if not names:
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
                ran.update(zip(RUNS, pool.map(ran.runner.run, RUNS)))
        passed = unittest.TextTestRunner(stream=sys.stdout).run(suite).wasSuccessful()
    finally:
        shutil.rmtree(ran.runner.folder)
    return 0 if passed else 1


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: tracer_test.py BUILD [TEST...]")
    sys.exit(main(os.path.abspath(sys.argv[1]), sys.argv[2:]))
