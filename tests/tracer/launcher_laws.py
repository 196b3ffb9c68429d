# SPDX-License-Identifier: Apache-2.0
"""A program of several ranks below each of its launchers: one of them runs, in the launcher's
place."""

import unittest

from runs import TracerTest, ran

FLOAT = 4
WEIGHTS = (64 * 64 + 64) * FLOAT  # of programs/ranks.py


class Launchers(unittest.TestCase):
    def traced(self, name, rank, world, node):
        one = ran[name]
        self.assertEqual(one.code, 0, one.err)
        facts = [one.trace.facts[key] for key in ("rank", "world_size", "node_size")]
        self.assertEqual(facts, [str(rank), str(world), str(node)], name)
        # What the program itself sees, said once: one process runs.
        said = "rank %d of %d: cuda:%d of %d" % (rank, world, rank % node, node)
        self.assertEqual([line for line in one.out.splitlines() if "rank" in line], [said])
        self.assertEqual(one.trace.bytes_of("parameter"), WEIGHTS)
        self.assertEqual(one.trace.facts["ddp_buckets"], str(WEIGHTS))
        return one.trace

    def test_torchrun_becomes_its_first_rank(self):
        self.traced("torchrun-2", 0, 2, 2)

    def test_many_nodes_cost_one_process_and_the_last_rank_has_its_own_device(self):
        self.traced("torchrun-64", 63, 64, 8)

    def test_the_older_launcher_does_too(self):
        self.traced("launch-8", 0, 8, 8)

    def test_a_function_for_each_rank_runs_in_this_process(self):
        self.traced("spawn-8", 7, 8, 8)

    def test_of_processes_that_a_program_starts_one_is_traced(self):
        self.traced("processes-2", 1, 2, 2)

    def test_without_a_launcher_the_ranks_asked_for_are_those_of_torchrun(self):
        self.traced("asked-64", 0, 64, 8)

    def test_ranks_with_the_same_work_have_the_same_trace(self):
        first, last = ran["asked-64"].trace, ran["torchrun-64"].trace
        sizes = [[(s.size, s.site.op) for s in trace.storages] for trace in (first, last)]
        self.assertEqual(sizes[0], sizes[1])


class Devices(TracerTest):
    def test_devices_have_contexts_and_generators(self):
        self.assertEqual(self.trace("devices").end, "seen")

    def test_torch_compile_without_triton_is_named(self):
        trace = self.trace("compiled")
        self.assertTrue(any("torch.compile is not followed" in said for _, said, _ in trace.notes))
