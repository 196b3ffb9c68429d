# SPDX-License-Identifier: Apache-2.0
"""One process of an environment: requests and answers are JSON, one a line."""

import json
import os
import sys

from .failure import Failure
from .runner import Runner


def entry(as_program):
    return serve


# Requests come on stdin, answers go to stdout. Both are taken away from the workload: what it
# prints goes to stderr, and it reads nothing.
def serve():
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    runner = Runner()
    for line in requests:
        answers.write(json.dumps(answer(runner, json.loads(line))) + "\n")
        answers.flush()
    # Neither destructors nor atexit: a driver's own can hang.
    sys.stderr.flush()
    os._exit(0)


def answer(runner, asked):
    try:
        return getattr(runner, asked.pop("do"))(**asked)
    except Failure as failure:
        return {"error": failure.kind, "why": failure.why}
    except BaseException as error:
        kind, why = runner.told(error)
        return {"error": kind, "why": why}
