# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs under the tracer: what the capture takes, and the names of pools."""

from runs import TracerTest

FLOAT = 4


class Graphs(TracerTest):
    def test_the_step_that_is_captured_is_seen_and_what_follows(self):
        trace = self.trace("graphs")
        steps = trace.alive_at("step ends")
        self.assertEqual(len(steps), 4)
        streams = {s.site.stream for s in trace.storages if s.site.op == "addmm"}
        self.assertEqual(streams, {1, 16, 0}, "aside, of the graph's pool, in the evaluation")
        sizes = [s.size for s in trace.storages if s.site.phase == "validation"]
        self.assertIn(2048 * 64 * FLOAT, sizes)

    def test_a_pool_is_released_with_its_last_graph_and_its_name_is_anothers(self):
        trace = self.trace("graph-pools")
        names = [s.site.stream for s in trace.storages if s.site.op == "exp"]
        self.assertEqual(names[:41], [16] * 41)
        self.assertEqual(names[41:43], [16, 16], "two in one pool")
        self.assertEqual(names[43:], list(range(17, 37)))
        released = trace.calls_of("graph_pool_released")
        self.assertEqual(released[:41], [[16]] * 41)
        self.assertLessEqual(len(released), 41 + 21, "the others at most when Python ends")
