# SPDX-License-Identifier: Apache-2.0
"""What several threads tell the event file at once. Tests of tracer_test.py."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "..", "python"))
from cufit_tracer.event_file import EventFile  # noqa: E402


class Late:
    """A lock that is had a little later: another thread tells the same before."""

    def __init__(self, real, tell):
        self.real, self.tell = real, tell

    def __enter__(self):
        tell, self.tell = self.tell, None
        if tell:
            tell()
        return self.real.__enter__()

    def __exit__(self, *error):
        return self.real.__exit__(*error)


class EventFiles(unittest.TestCase):
    def test_what_two_threads_tell_at_once_is_told_once(self):
        file = EventFile("")
        file.lock = Late(file.lock, lambda: file.text("a"))
        self.assertEqual((file.text("a"), file.text("b")), (0, 1))
        written = file.out.getvalue()
        self.assertEqual((written.count(b"a"), written.count(b"b")), (1, 1))

    def test_sites_keep_their_numbers(self):
        file = EventFile("")
        for text in ("mm", "add", ""):
            file.text(text)
        before = file.out.tell()
        file.lock = Late(file.lock, lambda: file.site("mm", "", "", 1))
        self.assertEqual((file.site("mm", "", "", 1), file.site("add", "", "", 1)), (0, 1))
        self.assertEqual(len(file.places), 2)
        self.assertEqual(file.out.tell() - before, 2 * 5)  # two records of five bytes
