# SPDX-License-Identifier: Apache-2.0
"""Batches of varying size (programs/varied.py): what is told of those that come, or more steps in
their place. Tests of tracer_test.py."""

from drawn_laws import DrawnSizes  # noqa: F401
from runs import TracerTest, ran

FLOAT = 4


class VaryingBatches(TracerTest):
    def steps(self, trace):
        return [mark for mark, _ in trace.marks].count("step ends")

    def test_batches_that_are_objects_are_told_by_what_they_hold(self):
        trace = self.trace("varied-objects")
        given, to_come = trace.calls_of("batch_given"), trace.calls_of("batch_to_come")
        for nodes, width, rows, edges in given + to_come:
            self.assertEqual((width, rows, edges), (8, 2, 3 * nodes))
        self.assertEqual(len(given) + len(to_come), 240 // 6)
        self.assertLess(self.steps(trace), 20)

    def test_batches_of_a_sampler_of_its_own_are_told_to_their_end(self):
        trace = self.trace("varied-sampler")
        told = trace.calls_of("batch_given") + trace.calls_of("batch_to_come")
        starts = [0]
        while starts[-1] + 12 < 240:
            starts.append(starts[-1] + 3 + starts[-1] % 5)
        self.assertEqual(len(told), len(starts) - 1)
        self.assertEqual([sizes[1] for sizes in told], [b - a for a, b in zip(starts, starts[1:])])

    # They come of the program itself: who fetches one that it did not put there waits for ever.
    def test_batches_of_data_without_a_length_are_not_fetched(self):
        trace = self.trace("varied-fed")
        self.assertGreater(len(trace.calls_of("batch_given")), 2)
        self.assertEqual(ran["varied-fed"].out, "")

    def test_more_steps_are_traced_where_none_is_like_another(self):
        trace = self.trace("varied-packed")
        self.assertGreater(self.steps(trace), 12)

    # Each run of steps that the same sequences share is copied before all are joined, but for the
    # first, which all share, and one of a single step: these lie in one piece as they are.
    def test_a_packed_sequence_is_joined_of_its_parts(self):
        trace = self.trace("varied-packed")
        longest, batch, width, _ = trace.calls_of("batch_given")[0]
        made = [s for s in trace.storages if s.site.op in ("contiguous", "new_empty")]
        first = [s.size for s in made[: [s.site.op for s in made].index("new_empty") + 1]]
        self.assertEqual(sum(first[:-1]) % (width * FLOAT), 0)
        self.assertLess(sum(first[:-1]), first[-1])
        for part in first[:-1]:
            self.assertGreater(part, width * FLOAT)
        whole = longest * batch * width * FLOAT
        self.assertIn(whole, trace.sizes("new_zeros") + trace.sizes("zeros"))

    def test_sizes_that_are_drawn_every_so_many_steps_are_seen(self):
        trace = self.trace("drawn")
        wanted = [2 * 3 * size * size * FLOAT for size in (16, 24, 40)]
        self.assertEqual(sorted(set(trace.sizes("_to_copy")) & set(wanted)), wanted)
        self.assertGreater(self.steps(trace), 12)

    def test_what_is_drawn_to_be_shown_takes_no_further_steps(self):
        self.assertEqual(self.steps(self.trace("drawn-shown")), 3)
