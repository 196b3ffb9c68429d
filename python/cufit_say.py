# SPDX-License-Identifier: Apache-2.0
"""What the embedded programs say on stderr: cufit gives the sentences by environment variables, in
the user's language. Python 3.6 and later."""

import contextlib
import os
import sys


class Speaker:
    """Of the sentences whose variables begin with `prefix`."""

    def __init__(self, prefix):
        self.prefix = prefix

    # Nothing that happens here may end the program.
    def say(self, name, **values):
        with contextlib.suppress(Exception):
            text = os.environ.get(self.prefix + name, "%s %r" % (name, values))
            for key, value in values.items():
                text = text.replace("{%s}" % key, str(value))
            self.write("cufit: %s\n" % text)

    def write(self, line):
        sys.stderr.flush()
        try:
            # Bytes: a Python of the C locale before 3.7 has no other letters.
            sys.stderr.buffer.write(os.fsencode(line))
        except (AttributeError, UnicodeError):  # the program has put something else there
            sys.stderr.write(line)
        sys.stderr.flush()


def said(error):
    return "%s: %s" % (type(error).__name__, error)
