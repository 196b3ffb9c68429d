# SPDX-License-Identifier: Apache-2.0
"""What is said of the part of a program that follows its steps."""

from runs import TracerTest


class BehindSteps(TracerTest):
    def test_a_part_that_fails_is_told_with_its_line(self):
        trace = self.trace("episodes")
        self.assertEqual(trace.end, "seen")
        told = [(said, line) for kind, said, line in trace.notes if kind == "assumed"]
        said = "the part of the program behind the steps was not followed from this line on, and "
        said += "what it takes is not in the answer: "
        said += "TypeError: '<' not supported between instances of 'int' and 'NoneType'"
        self.assertIn((said, "episodes.py:26"), told)
