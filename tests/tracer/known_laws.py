# SPDX-License-Identifier: Apache-2.0
"""Operators that were called before, and what the tracer knows of tensors while the program goes
on."""

import os
import subprocess
import sys

from event_file_laws import EventFiles  # noqa: F401
from runs import TracerTest, ran


class Known(TracerTest):
    def test_operators_that_were_called_before_do_as_then(self):
        trace = self.trace("repeated")
        asked = [int(line.split()[1]) for line in ran["repeated"].out.splitlines()]
        self.assertGreater(asked[0], 8)
        self.assertEqual(asked[1:], [0, 0])
        told = [(s.size, s.site.op) for s in trace.storages[1:] if s.site.source < "repeated.py:35"]
        self.assertEqual(told, 3 * told[: len(told) // 3])
        self.assertEqual(trace.calls_of("matmul"), 3 * [[32, 0, 1, 8, 32, 64]])

    def test_what_is_decorated_and_not_called_is_not_compiled(self):
        said = [note[1] for note in self.trace("repeated").notes]
        self.assertEqual([text for text in said if "compile" in text], [])
        self.assertEqual(self.trace("repeated").facts["compiled"], "0")

    def test_assertions_about_values_that_nobody_has_hold(self):
        self.assertEqual(self.trace("repeated").end, "ended")

    def test_what_the_device_draws_leaves_the_generator_of_the_cpu(self):
        self.trace("device_draws")
        self.assertEqual(ran["device_draws"].out.splitlines(), ["(4, 3000) True"])

    def test_the_tracer_looks_away_under_a_mode_of_the_program(self):
        self.trace("modes")
        self.assertEqual(ran["modes"].out.splitlines(), ["Over", "Over Mode", "Mode Over", "Mode"])

    def test_each_function_of_torch_has_one_rule_of_dynamo(self):
        self.trace("rules")
        self.assertEqual(ran["rules"].out.strip(), "True")

    def test_a_kernel_in_cuda_is_not_run(self):
        notes = [(said, place) for _, said, place in self.trace("rules").notes]
        said = "the CUDA kernel twice was not run: what it computes has no values"
        self.assertIn((said, "rules.py:13"), notes)


class Kept(TracerTest):
    def test_a_weight_stays_one_whatever_looks_at_it(self):
        trace = self.trace("frozen-product")
        self.assertEqual(trace.bytes_of("parameter"), (64 * 96 + 96 + 96 * 32) * 4)

    def test_threads_tell_of_what_each_of_them_makes(self):
        trace = self.trace("threads")
        read = sorted((10000 + 1000 * number) * 4 for number in range(200))
        for op in ("_to_copy", "mul", "add"):
            setup = trace.sizes(op, phase="setup")
            self.assertEqual(sorted(size for size in setup if size >= read[0]), read, op)
        kept = sorted(s.size for s in trace.alive_at("step begins")[0] if s.site.op == "add")
        self.assertEqual(kept, read)
        self.assertEqual(trace.bytes_of("parameter"), sum(read) + (64 * 64 + 64) * 4)

    def test_one_operator_at_a_time_is_learnt_from(self):
        self.passes("two_listeners.py")

    def test_who_looks_where_the_program_is_keeps_nothing_alive(self):
        self.passes("held_frames.py")

    def passes(self, script):
        here = os.path.dirname(os.path.abspath(__file__))
        done = subprocess.run(
            [sys.executable, "-B", os.path.join(here, script)],
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
