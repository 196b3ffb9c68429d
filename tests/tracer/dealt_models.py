# SPDX-License-Identifier: Apache-2.0
"""Models that cufit itself deals out over ranks: of `--train`, and in plans."""

import os
import subprocess

from runs import PROGRAMS, ran
from sharded_shapes import FLOAT, SHAPES, SHARD, WHOLE, ShardingTest, elements, own_elements, padded

# What `--train full --strategy` makes of a model: programs/transformers_stub.
HIDDEN, MIDDLE, VOCABULARY = 130, 270, 54
BLOCK = [(HIDDEN,), (HIDDEN,), (MIDDLE, HIDDEN), (MIDDLE,), (HIDDEN, MIDDLE), (HIDDEN,)]
ENDS = [(VOCABULARY, HIDDEN), (VOCABULARY, HIDDEN)]
MODEL = 2 * BLOCK + ENDS


class Dealt(ShardingTest):
    def state(self, name):
        return self.held(name, "parameter"), self.held(name, "optimizer state")

    def shards(self, world, shapes=MODEL):
        return FLOAT * sum(padded(shape, world) for shape in shapes)

    def test_fsdp_holds_a_padded_shard_of_all(self):
        for world in (2, 4):
            held, states = self.state("model-fsdp-%d" % world)
            # The last rank of those that share 54 rows has none but what pads them.
            self.assertEqual(held, self.shards(world))
            counters = FLOAT * len(MODEL)  # of steps, beside two states of the size of the shard
            of_shard = FLOAT * sum(map(own_elements(world), MODEL))
            self.assertEqual(states, 2 * of_shard + counters)

    def test_each_block_is_gathered_in_half_precision(self):
        gathered = {s.size for s in self.trace("model-fsdp-4").storages if s.category == "gathered"}
        self.assertEqual(gathered, {2 * 4 * padded(shape) for shape in MODEL})
        notes = {note[0]: note[1] for note in self.trace("model-fsdp-4").notes}
        self.assertEqual(notes["model_wrapped"], "2: Block")

    def test_more_ranks_take_no_more(self):
        for category in ("parameter", "optimizer state"):
            self.assertLess(
                self.held("model-fsdp-4", category), self.held("model-fsdp-2", category)
            )

    def test_ddp_holds_all_and_its_buckets(self):
        whole = FLOAT * sum(map(elements, MODEL))
        held, states = self.state("model-ddp-4")
        self.assertEqual(held, whole)
        self.assertEqual(states, 2 * whole + FLOAT * len(MODEL))
        self.assertEqual(self.held("model-ddp-4", "communication"), whole)

    def test_groups_of_two_share_layers_and_two_groups_the_rest(self):
        halves = [(HIDDEN,), (HIDDEN,), (MIDDLE // 2, HIDDEN), (MIDDLE // 2,)]
        halves += [(HIDDEN, MIDDLE // 2), (HIDDEN,)]
        held, _ = self.state("model-tp-4")
        self.assertEqual(held, self.shards(2, 2 * halves + ENDS))
        notes = {note[0]: note[1] for note in self.trace("model-tp-4").notes}
        self.assertEqual(notes["model_split"], "4: down_proj, up_proj")


# What `--plan` puts in the place of DistributedDataParallel.
class Planned(ShardingTest):
    def test_its_model_is_sharded(self):
        self.assertEqual(self.held("copies-fsdp", "parameter"), SHARD)
        self.assertEqual(self.held("copies-fsdp", "gathered"), 0)
        facts = self.trace("copies-fsdp").facts
        self.assertEqual(facts["variant"], "fsdp")
        self.assertEqual(facts["data_parallel"], "ddp")
        self.assertEqual(facts["blocks_at"], "module.layers")
        for key in ("weights_bytes", "trained_bytes"):
            self.assertEqual(int(facts[key]), WHOLE)

    def test_an_optimizer_that_was_there_steps_the_shards(self):
        own = FLOAT * sum(map(own_elements(4), SHAPES))
        self.assertEqual(self.held("copies-fsdp", "optimizer state"), 2 * own)

    # tests/unit/report/fit_plan_lines_test.cc: what is printed is what runs here.
    def test_printed_lines_of_zero1_keep_groups(self):
        run = [ran.runner.python, os.path.join(PROGRAMS, "zero1_lines.py")]
        done = subprocess.run(run, capture_output=True, text=True, timeout=300)
        self.assertEqual(
            (done.stdout, done.returncode), ("trains the same: True\n", 0), done.stderr
        )

    def test_states_are_of_the_parameters_that_a_rank_steps(self):
        self.assertEqual(self.held("copies-zero1", "parameter"), WHOLE)
        # The largest first, each to the rank that has least.
        states = self.held("copies-zero1", "optimizer state")
        held = [0] * 4
        for shape in sorted(SHAPES, key=elements, reverse=True):
            held[held.index(min(held))] += elements(shape)
        self.assertLess(held[0], sum(map(elements, SHAPES)) // 3)
        self.assertEqual(states, 2 * FLOAT * held[0])
