# SPDX-License-Identifier: Apache-2.0
"""Buckets of DistributedDataParallel, by programs/two_ranks.py."""

from runs import TracerTest


class GradientBuckets(TracerTest):
    parameters = (256 * 512 + 512 + 512 * 128 + 128) * 4  # but for those of the sparse layer

    def test_gradients_are_parts_of_their_buckets(self):
        trace = self.trace("two-ranks")
        self.assertEqual(trace.facts["world"], "2")
        # Of the batch of sends the group's own communicator, of `send` one of these two ranks; the
        # further groups are not used.
        keys = ("communicators", "rings", "sends", "receives")
        self.assertEqual([trace.facts["nccl_" + key] for key in keys], ["2", "1", "2", "1"])
        self.assertEqual(trace.facts["ddp_buckets"], str(self.parameters))
        alive = [s for mark, alive in trace.marks[-2:] for s in alive if s.category == "gradient"]
        buckets = [s.size for s in alive if s.site.op == "empty"]  # none of the sparse layer
        self.assertEqual(buckets, 2 * [self.parameters])

    def test_a_communication_hook_runs(self):
        trace = self.trace("two-ranks")
        halves = [s for s in trace.storages if s.size == self.parameters // 2]
        self.assertEqual(len(halves), 3, "one a step")
        # That of a step is kept until the next one is made.
        kept = [[s for s in alive if s in halves] for alive in trace.alive_at("step ends")]
        self.assertEqual(kept, [[half] for half in halves])

    def test_of_a_static_graph_the_first_bucket_lives_on(self):
        for name, beside in (("two-ranks", False), ("two-ranks-static", True)):
            trace = self.trace(name)
            first, second = [
                s for s in trace.storages if s.size == self.parameters and s.site.op == "empty"
            ]
            later = [s for s in trace.storages if second.number < s.number < first.until]
            # Up to the first bucket that is ready, in the next backward pass.
            self.assertEqual([s for s in later if s.site.phase == "backward"] != [], beside, name)
            self.assertEqual([s for s in later if s.site.phase == "optimizer"], [], name)
            self.assertIsNone(second.until)
