#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose tensors are dealt out over ranks, under the tracer of `cufit fit`: one rank of
each runs, and what it holds is compared with what follows from the sizes.

sharding_test.py BUILD [TEST...], as tracer_test.py."""

import concurrent.futures
import os
import shutil
import subprocess
import sys
import unittest

from dealt_models import Dealt, Planned  # noqa: F401
from runs import DEALT, PACKAGES, SHARDED, Runner, ran
from sharded_shapes import FLOAT, NARROW, SHAPES, SHARD, WIDE, ShardingTest, elements, padded


class Fsdp2(ShardingTest):
    def test_a_rank_holds_its_shard(self):
        self.assertEqual(self.held("fsdp2", "parameter"), SHARD)
        self.assertEqual(self.held("meta", "parameter"), SHARD)
        self.assertEqual(self.held("kept", "parameter"), SHARD)

    # Of the last rank with their shards; the states of the optimizer are of its own rows alone.
    def test_where_rows_do_not_divide_ranks_differ(self):
        self.assertEqual(self.trace("fsdp2").facts["ranks_differ"], "shards of FSDP")
        own = [max(min(shape[0] - 3 * -(-shape[0] // 4), -(-shape[0] // 4)), 0) for shape in SHAPES]
        rows = [elements(shape) // shape[0] for shape in SHAPES]
        states = sum(2 * FLOAT * a * b for a, b in zip(own, rows))
        self.assertEqual(self.held("fsdp2", "optimizer state"), states)

    def test_what_was_gathered_is_given_back(self):
        self.assertEqual(self.held("fsdp2", "gathered"), 0)
        gathered = [s for s in self.trace("fsdp2").storages if s.category == "gathered"]
        sizes = {FLOAT * 4 * padded(shape) for shape in SHAPES}
        self.assertEqual({s.size for s in gathered}, sizes)
        # In each of three steps forward and backward.
        self.assertEqual(len(gathered), 3 * 2 * len(SHAPES))

    def test_without_resharding_it_is_gathered_once_a_step(self):
        gathered = [s for s in self.trace("kept").storages if s.category == "gathered"]
        self.assertEqual(len(gathered), 3 * len(SHAPES))

    def test_a_group_takes_half_of_the_ranks_in_hybrid_sharding(self):
        self.assertEqual(
            self.held("hybrid", "parameter"), FLOAT * sum(padded(shape, 2) for shape in SHAPES)
        )

    def test_what_is_offloaded_is_not_on_the_device(self):
        for category in ("parameter", "gradient", "optimizer state"):
            self.assertEqual(self.held("offloaded", category), 0)
        self.assertTrue([s for s in self.trace("offloaded").storages if s.category == "gathered"])

    def test_buffers_of_collectives_have_streams_of_their_own(self):
        trace = self.trace("fsdp2")
        streams = {s.site.stream for s in trace.storages if s.category == "communication"}
        self.assertGreaterEqual(len(streams - {0}), 1)

    def test_every_number_of_ranks(self):
        self.assertIn("worlds: done", ran["worlds"].out, ran["worlds"].err)


class Fsdp1(ShardingTest):
    def test_a_rank_holds_its_shard(self):
        # Of each layer all parameters as one row, each padded to 16 bytes, and that to the ranks.
        layer = sum(-(-elements(shape) // 4) * 4 for shape in SHAPES[:4])
        self.assertEqual(self.held("fsdp1", "parameter"), FLOAT * 2 * -(-layer // 4))

    # Memory that another stream uses is taken again once that is done.
    def test_what_is_recorded_on_a_stream_waits(self):
        trace = self.trace("fsdp1")
        waits, done = trace.calls_of("waits_for_event"), trace.calls_of("events_done")
        self.assertTrue(waits)
        self.assertTrue(done)
        self.assertLessEqual(sum(map(len, done)), len(waits))


class OtherStreams(ShardingTest):
    # One batch waits while the next step runs, and no more of them.
    def test_what_is_freed_waits_no_longer_than_kernels_can(self):
        trace = self.trace("recorded")
        waiting = []
        for site, numbers in trace.calls:
            if site.op in ("waits_for_event", "events_done"):
                change = 1 if site.op == "waits_for_event" else -len(numbers)
                waiting.append((waiting[-1] if waiting else 0) + change)
        self.assertGreaterEqual(len(waiting), 6)
        self.assertLessEqual(max(waiting), 3)
        self.assertGreaterEqual(max(waiting), 1)


class Parts(ShardingTest):
    def test_tensor_parallel_weights_are_dealt_out(self):
        # Of the first product rows, of the second columns; its bias is whole.
        first = WIDE // 2 * NARROW + WIDE // 2
        second = NARROW * WIDE // 2 + NARROW
        self.assertEqual(self.held("tensor", "parameter"), 2 * FLOAT * (first + second))

    def test_a_collective_returns_what_it_made(self):
        trace = self.trace("tensor")
        self.assertEqual(trace.sizes("wait_tensor") + trace.sizes("_wrap_tensor_autograd"), [])

    def test_a_stage_learns_what_it_receives(self):
        first, second = self.trace("stage-0"), self.trace("stage-1")
        self.assertEqual(first.facts["ranks_differ"], "stages of a pipeline")
        weights = [s.size for s in second.storages if s.category == "parameter"]
        self.assertEqual(sorted(weights), [32 * FLOAT, 192 * 32 * FLOAT])
        # Four micro-batches of eight rows, as wide as the first stage's result.
        self.assertEqual(second.sizes("empty").count(8 * 192 * FLOAT), 4)


# Communicators of NCCL, those with rings, and ranks that these send to and receive from.
class Connections(ShardingTest):
    def of(self, name):
        keys = ("communicators", "rings", "sends", "receives")
        return [int(self.trace(name).facts["nccl_" + key]) for key in keys]

    def test_weights_that_rank_0_scatters_are_received(self):
        self.assertEqual(self.of("tensor"), [1, 1, 0, 1])
        said = "tensors that one rank sends to the others"
        self.assertEqual(self.trace("tensor").facts["ranks_differ"], said)

    def test_stages_send_without_rings(self):
        self.assertEqual(self.of("stage-0"), [1, 0, 1, 1])

    def test_an_exchange_is_between_all_ranks(self):
        self.assertEqual(self.of("exchanged"), [1, 1, 1, 1])

    # The group of all ranks has none where both of a mesh are used instead.
    def test_groups_that_are_not_used_have_none(self):
        self.assertEqual(self.of("fsdp2"), [1, 1, 0, 0])
        self.assertEqual(self.of("hybrid"), [2, 2, 0, 0])


class Told(ShardingTest):
    def test_ranks_have_what_rank_0_told_them(self):
        for rank in (0, 1, 3):
            weights = [s.size for s in self.trace("told-%d" % rank).storages]
            self.assertIn(320 * (16 + 16 * rank) * FLOAT, weights)
        self.assertEqual(ran["told-0"].out.split()[0], ran["told-1"].out.split()[0])

    def test_what_is_not_known_is_told(self):
        said = "what rank 2 tells the others in objects is not known: those of this rank stay"
        for rank in (0, 1, 3):
            self.assertIn(("assumed", said, "told.py:38"), self.trace("told-%d" % rank).notes)
            self.assertIn("of rank %d" % rank, ran["told-%d" % rank].out)
        self.assertIn(("assumed", said, "told.py:34"), self.trace("told-3").notes)


class Exchanged(ShardingTest):
    LONG, WIDE, HALF, ROWS = 512, 64, 2, 2

    # Each rank has half of the sequence. In turn it attends to its own half, and to the part of the
    # other that goes before: keys and values of both halves go round.
    def test_attention_goes_round(self):
        trace, own = self.trace("exchanged"), self.LONG // 2
        calls = [tuple(n[4:6]) for site, n in trace.calls if site.op == "sdpa"]
        self.assertEqual(sorted(calls), 6 * [(own, own // 2)] + 6 * [(own, own)])
        whole = 2 * 2 * self.ROWS * self.LONG * self.WIDE  # keys and values, two bytes each
        self.assertEqual(set(trace.sizes("all_gather_into_tensor")), {whole})
        self.assertEqual(trace.facts["ranks_differ"], "turns of ring attention")

    # Each of 512 tokens goes to two experts, half of them to the other rank, which sends as many.
    def test_tokens_go_to_experts_evenly(self):
        trace = self.trace("exchanged")
        rows = FLOAT * self.WIDE * self.ROWS * self.LONG // 2 * 2
        self.assertEqual([s for s in trace.sizes("new_empty") if s > 100], 3 * 4 * [rows])
        said = [text for kind, text, _ in trace.notes if kind == "assumed"]
        self.assertTrue(said and all("tokens of each expert" in text for text in said), said)
        self.assertNotIn("data_dependent", [kind for kind, _, _ in trace.notes])

    def test_a_step_of_several_groups_is_one(self):
        trace = self.trace("exchanged")
        marks = [mark for mark, _ in trace.marks]
        self.assertEqual(marks, 3 * ["step begins", "step ends"] + ["after the steps"])
        for alive in trace.alive_at("step ends"):
            weights = sum(s.size for s in alive if s.category == "parameter")
            states = sum(s.size for s in alive if s.category == "optimizer state")
            self.assertEqual(states, 2 * weights)


# Of programs/zero.py: each rank has half of the elements.
class Zero(ShardingTest):
    ELEMENTS = sum(map(elements, SHAPES[:4]))

    def setUp(self):
        ask = "import importlib.util as u, sys; sys.exit(not u.find_spec('deepspeed'))"
        packages = dict(os.environ, PYTHONPATH=os.pathsep.join(PACKAGES))
        if subprocess.run([ran.runner.python, "-c", ask], env=packages, cwd="/").returncode:
            self.skipTest("deepspeed is not installed (CUFIT_TEST_PACKAGES names its folder)")

    def test_stage_2_has_whole_weights_and_half_of_the_rest(self):
        weights = 2 * self.ELEMENTS + 4 * self.ELEMENTS // 2
        self.assertEqual(self.held("zero-2", "parameter"), weights)
        self.assertEqual(self.held("zero-2", "optimizer state"), 8 * self.ELEMENTS // 2)
        self.assertEqual(set(self.communication("zero-2")), {2 * 40000})

    def test_stage_3_has_half_of_all(self):
        self.assertEqual(self.held("zero-3", "parameter"), (2 + 4) * self.ELEMENTS // 2)
        self.assertEqual(self.held("zero-3", "gradient"), 2 * self.ELEMENTS // 2)
        self.assertEqual(self.held("zero-3", "optimizer state"), 8 * self.ELEMENTS // 2)
        self.assertEqual(self.communication("zero-3"), [2 * 40000])

    def test_a_stage_of_its_pipeline_learns_what_it_receives(self):
        first, second = self.trace("zero-pipe-0"), self.trace("zero-pipe-1")
        self.assertEqual(first.facts["ranks_differ"], "stages of a pipeline")
        self.assertEqual(self.held("zero-pipe-0", "parameter"), 192 * 65 * FLOAT)
        self.assertEqual(self.held("zero-pipe-1", "parameter"), 32 * 193 * FLOAT)
        self.assertIn(4 * 192 * FLOAT, [s.size for s in second.storages])

    def communication(self, name):
        return [s.size for s in self.trace(name).storages if s.category == "communication"]


def main():
    build = os.path.abspath(sys.argv[1])
    runner = ran.runner = Runner(build)
    if not os.access(runner.python, os.X_OK):
        print("skipped: no %s (tools/fetch-torch)" % runner.python)
        sys.exit(77)
    # A stage reads what the one before wrote.
    names = ["worlds", "recorded", "stage-0", "told-0", "exchanged", *SHARDED]
    names += [*("model-" + name for name in DEALT), "copies-fsdp", "copies-zero1"]
    try:
        if not sys.argv[2:]:
            with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
                for name, one in zip(names, pool.map(runner.run, names)):
                    ran[name] = one
        ran["stage-0"], ran["stage-1"], ran["told-0"]
        unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
    finally:
        shutil.rmtree(runner.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
