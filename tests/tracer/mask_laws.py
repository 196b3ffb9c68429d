# SPDX-License-Identifier: Apache-2.0
"""Masks, and how many rows they pick."""

from runs import TracerTest, ran


class Masks(TracerTest):
    def test_a_mask_made_by_slices_picks_the_rows_it_holds(self):
        picked = self.trace("masks").sizes("index", phase="backward")
        self.assertIn(64 * 512 * 4, picked)

    def test_what_is_written_says_how_many_rows_a_mask_holds(self):
        self.assertIn(50 * 96 * 4, self.trace("masks").sizes("index", phase="backward"))

    def test_what_was_zeros_is_not_once_a_part_is_written(self):
        self.trace("masks")
        self.assertEqual(ran["masks"].out.split()[0], "200")

    def test_a_mask_that_is_written_into_holds_what_nobody_knows(self):
        self.trace("unknown")
        self.assertEqual(ran["unknown"].out.split(), ["0", "50", "200"])


class Frozen(TracerTest):
    def test_weights_and_buffers_from_the_cpu_are_no_inputs(self):
        trace = self.trace("frozen")
        self.assertEqual(trace.bytes_of("buffer"), 64 * 64 * 4)
        self.assertEqual(trace.bytes_of("parameter"), (64 * 64 + 64) * 4)
