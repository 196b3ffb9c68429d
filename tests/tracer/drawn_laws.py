# SPDX-License-Identifier: Apache-2.0
"""Which draws of a loop can change a size at a later step. Tests of tracer_test.py."""

import os
import random
import shutil
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "..", "python"))
from cufit_tracer.steps.drawn_sizes import draws_later  # noqa: E402

LOOP = """\
for step in range(1):
    if step % 50 == 49:
{block}
    make(size)
    seen(ends())
"""
# What stands in the block, and whether a size can change by it.
BLOCKS = {
    "size = random.choice(sizes)": True,
    "side = random.randint(1, 4)\nsize = 32 * side": True,
    "for side in random.sample(sizes, 2):\n    size = side": False,  # as before: no assignment
    "sides = random.sample(sizes, 2)\nfor side in sides:\n    size = side": True,
    "rows.length = random.choice(sizes)": True,
    "rows['length'] = random.choice(sizes)": True,
    "length = random.choice(sizes)\nrows.cut(length)": True,
    "length = random.choice(sizes)\nrows.length = length": True,
    "length = random.choice(sizes)\nif length > 20:\n    size = 20": True,
    "length = random.choice(sizes)\nloss = model(make(length))\nloss.backward()": True,
    "sample = random.choice(samples)\nprint(sample)": False,
    "at = random.randrange(9)\nsample = samples[at]\nlog.info('%s', model(sample))": False,
    "picked = random.sample(samples, 3)\nfor one in picked:\n    print(one)": False,
    "sample = random.choice(samples)\nwith quiet:\n    print(model(sample))": False,
    "print(random.choice(samples))": False,
}
FUNCTIONS = {
    # Of the file, read by another function.
    "def make(_):\n    return sample\n\nsample = 3\n" + LOOP: True,
    # A name of its own there.
    "def make(sample):\n    return sample\n\ndef train():\n    sample = 3\n%s\ntrain()": False,
    # Of the function around it, read by one within.
    "def train():\n    sample = 3\n    make = lambda _: sample\n%s\ntrain()": True,
}


def indented(text, by):
    return "".join(" " * by + line + "\n" for line in text.splitlines())


class DrawnSizes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cufit-drawn-", dir=HERE)
        self.count = 0

    def tearDown(self):
        shutil.rmtree(self.folder)

    def draws(self, text):
        self.count += 1
        file = os.path.join(self.folder, "program%d.py" % self.count)
        with open(file, "w") as out:
            out.write(text)
        seen = []
        names = {"random": random, "size": 3, "make": id, "seen": seen.append, "sizes": [1, 2]}
        names["ends"] = lambda: draws_later(sys._getframe(1))
        exec(compile(text, file, "exec"), names)
        return seen

    def test_a_draw_counts_where_it_is_used_beyond_its_block(self):
        for block, expected in BLOCKS.items():
            with self.subTest(block):
                self.assertEqual(self.draws(LOOP.format(block=indented(block, 8))), [expected])

    def test_a_name_is_looked_for_where_it_is_known(self):
        block = indented("sample = random.choice(sizes)\nprint(sample)", 8)
        loop = LOOP.format(block=block)
        for text, expected in FUNCTIONS.items():
            text = text.replace(LOOP, loop).replace("%s", indented(loop, 4))
            with self.subTest(text):
                self.assertEqual(self.draws(text), [expected])
