# SPDX-License-Identifier: Apache-2.0
"""What is said of a part of the program that failed where nothing depends on it but what follows
the steps: an episode's result that was never set, a value that is made up."""

NOT_FOLLOWED = (
    "the part of the program behind the steps was not followed from this line on, and what it takes"
    " is not in the answer: "
)


def described(error, most=200):
    said = str(error)[:most]
    return "%s: %s" % (type(error).__name__, said) if said else type(error).__name__
