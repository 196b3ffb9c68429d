# SPDX-License-Identifier: Apache-2.0
"""What is said of the part of a program that follows its steps."""

import os
import tempfile

from runs import TracerTest, ran


class BehindSteps(TracerTest):
    def test_a_part_that_fails_is_told_with_its_line(self):
        trace = self.trace("episodes")
        self.assertEqual(trace.end, "seen")
        told = [(said, line) for kind, said, line in trace.notes if kind == "assumed"]
        said = "the part of the program behind the steps was not followed from this line on, and "
        said += "what it takes is not in the answer: "
        said += "TypeError: '<' not supported between instances of 'int' and 'NoneType'"
        self.assertIn((said, "episodes.py:26"), told)

    # Libraries save to a file of another name first; a training step stands behind that.
    def test_what_is_saved_under_another_name_first_is_followed(self):
        trace = self.trace("checkpointed")
        marks = [mark for mark, _ in trace.marks]
        behind = marks[marks.index("after the steps") :]
        self.assertEqual(behind[1:3], ["step begins", "step ends"])
        names = ["moved", "replaced", "renamed"]
        self.assertEqual(
            ran["checkpointed"].out.split()[:9], [w for n in names for w in (n, "weights", "False")]
        )
        folder = os.path.join(tempfile.gettempdir(), "cufit-checkpointed")
        self.assertFalse(os.path.exists(folder))
