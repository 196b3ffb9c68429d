# SPDX-License-Identifier: Apache-2.0
"""What programs/memory_efficient.py does before its first step, and xformers' attention."""

from runs import TracerTest

BATCH, LENGTH, HEADS, SIZE = 4, 256, 8, 64


class BeforeSteps(TracerTest):
    def test_attention_of_xformers_is_that_of_pytorch(self):
        calls = self.trace("memory-efficient").calls_of("sdpa")
        whole = [16, BATCH, HEADS, LENGTH, LENGTH, SIZE, HEADS]
        alone = [16, BATCH * HEADS, 1, LENGTH, LENGTH, SIZE, 1]
        # Flash attention, CUTLASS's with a tensor as the bias; behind the two that evaluate.
        forward = [[0, *whole], [0, *whole], [1, *whole], [0, *alone]]
        self.assertEqual(calls[8:12], forward)
        self.assertTrue(all(numbers[0] % 8 in (0, 1) for numbers in calls))

    # Prodigy asks so whether there is anything to keep.
    def test_some_number_is_not_zero(self):
        trace = self.trace("memory-efficient")
        self.assertIn(4 << 22, trace.sizes("empty", phase="setup"))
        read = [(said, line) for kind, said, line in trace.notes if kind == "data_dependent"]
        self.assertEqual(read, [("bool value read; True was given", "memory_efficient.py:40")])

    def test_what_evaluates_first_is_not_what_trains(self):
        self.assertEqual(self.trace("memory-efficient").facts["batch"], str(BATCH))

    def test_a_frozen_part_begins_no_step(self):
        trace = self.trace("memory-efficient")
        first = trace.alive_at("step begins")[0]
        self.assertIn("parameter", {storage.category for storage in first})
        of_frozen = [s for s in trace.storages if s.site.module == "Linear"]
        self.assertEqual(of_frozen[0].site.phase, "setup")
        self.assertEqual(len(trace.alive_at("step ends")), 3)
