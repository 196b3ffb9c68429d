# SPDX-License-Identifier: Apache-2.0
"""What the ranks of programs/sharded.py hold, from the sizes."""

import unittest

from runs import ran

# Of programs/sharded.py: the last of four ranks. Rows are dealt out in equal parts, rounded up.
WIDE, NARROW, ROWS, FLOAT = 270, 130, 16, 4
SHAPES = 2 * [(WIDE, NARROW), (WIDE,), (NARROW, WIDE), (NARROW,)]


def elements(shape):
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def padded(shape, world=4):
    return -(-shape[0] // world) * elements(shape) // shape[0]


# Of the last of so many ranks, without what pads it.
def own_elements(world):
    def of_shape(shape):
        rows = -(-shape[0] // world)
        return max(shape[0] - (world - 1) * rows, 0) * elements(shape) // shape[0]

    return of_shape


WHOLE = FLOAT * sum(map(elements, SHAPES))
SHARD = FLOAT * sum(map(padded, SHAPES))


class ShardingTest(unittest.TestCase):
    def trace(self, name):
        one = ran[name]
        self.assertEqual(one.code, 0, one.err)
        self.assertEqual(one.trace.end, "seen")
        self.assertFalse([note for note in one.trace.notes if note[0] == "error"])
        return one.trace

    # Of a category, at the end of the last step; "" where it has none.
    def held(self, name, category):
        alive = self.trace(name).alive_at("step ends")[-1]
        return sum(s.size for s in alive if s.category == category)
