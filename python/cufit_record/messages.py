# SPDX-License-Identifier: Apache-2.0
"""What is said on stderr: cufit gives the sentences, in the user's language."""

import os
import sys


# Bytes: a Python of the C locale before 3.7 has no other letters.
def say(name, **values):
    text = os.environ.get("CUFIT_RECORD_SAY_" + name, name)
    for key, value in values.items():
        text = text.replace("{%s}" % key, str(value))
    line = "cufit: %s\n" % text
    sys.stderr.flush()
    try:
        sys.stderr.buffer.write(os.fsencode(line))
    except (AttributeError, UnicodeError):  # the program has put something else there
        sys.stderr.write(line)
    sys.stderr.flush()


def said(error):
    return "%s: %s" % (type(error).__name__, error)


def say_off(error):
    text = os.environ.get("CUFIT_RECORD_SAY_OFF", "OFF {why}")
    sys.stderr.write("cufit: %s\n" % text.replace("{why}", said(error)))
