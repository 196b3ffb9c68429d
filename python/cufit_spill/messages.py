# SPDX-License-Identifier: Apache-2.0
"""What is said on stderr, unless `-q` was given."""

import os

from cufit_say import Speaker, said

__all__ = ["said", "say", "size"]
speaker = Speaker("CUFIT_SPILL_SAY_")


def say(name, **values):
    if not os.environ.get("CUFIT_SPILL_QUIET"):
        speaker.say(name, **values)


def size(amount):
    if amount < 1 << 30:
        return "%.0f MiB" % (amount / (1 << 20))
    return "%.1f GiB" % (amount / (1 << 30))
