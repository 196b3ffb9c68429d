# SPDX-License-Identifier: Apache-2.0
"""Laws of what a trace says of its program beside storages."""

from runs import TracerTest


class ToldFacts(TracerTest):
    # Of the program's own data, which was repeated for the steps' sake.
    def test_the_samples_of_an_epoch_are_told(self):
        facts = self.trace("loader").facts
        self.assertEqual((facts.get("samples"), facts.get("samples_in_batches_of")), ("64", "24"))

    def test_an_error_of_the_programs_own_is_told_from_pytorchs(self):
        facts = self.trace("failing", code=1).facts
        self.assertEqual((facts.get("program"), facts.get("raised_in")), ("failing.py", "program"))
