# SPDX-License-Identifier: Apache-2.0
"""What is said on stderr: cufit gives the sentences, in the user's language."""

import contextlib
import os
import sys


# Nothing that happens here may end the program.
def say(name, **values):
    with contextlib.suppress(Exception):
        tell(name, values)


def tell(name, values):
    if os.environ.get("CUFIT_SPILL_QUIET"):
        return
    text = os.environ.get("CUFIT_SPILL_SAY_" + name, name + " {}".format(values))
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
    say("OFF", why=said(error))


def size(amount):
    if amount < 1 << 30:
        return "%.0f MiB" % (amount / (1 << 20))
    return "%.1f GiB" % (amount / (1 << 30))
