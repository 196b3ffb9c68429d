# SPDX-License-Identifier: Apache-2.0
"""Lines that evaluate, which are run beside the program."""

import sys
import threading

from ..event_file import OTHER
from ..tensors import tensors_within
from ..user_files import innermost_line
from .evaluation_lines import BlockEnds, evaluations_within
from .unfollowed import NOT_FOLLOWED, described


class Evaluations:
    # Where the loop over the batches of training ends, before it does: what comes every so many
    # steps (evaluation_lines.py), and then a step. What those lines bound stays for that step;
    # where these are tensors, the lines are run beside them a second time.
    def evaluate_within(self, iterator):
        if (
            self.within > 1
            or iterator not in self.live
            or threading.current_thread() is not threading.main_thread()
        ):
            return False
        again, self.within = self.within == 1, self.within + 1
        if again and not self.bound:
            return False
        restarted, seen = self.restarted, self.forwards
        self.run_lines(evaluations_within(sys._getframe(4)), again)
        self.join_last()
        self.restarted = restarted  # the loop goes on for a step
        self.tracer.phase = OTHER
        return self.forwards > seen

    # `again`: beside what they left the first time.
    def run_lines(self, lines, again):
        file = self.tracer.file
        for line, run in lines:
            before, problem, failed = self.forwards, "", ""
            modes = [
                (module, module.training)
                for root in list(self.tracer.outermost)
                for module in root.modules()
            ]
            depth = len(self.tracer.modules)
            self.running = True
            try:
                bound = run()
                if any(tensors_within(self.tracer.torch, value) for value in bound.values()):
                    self.bound.append(bound)
            except BlockEnds as end:
                problem = str(end)
            except (Exception, SystemExit) as error:
                place = innermost_line(error.__traceback__) or line
                failed = NOT_FOLLOWED + described(error)
            finally:
                self.running = False
                del self.tracer.modules[depth:]
            for module, training in modes:
                module.training = training
            if again:
                continue
            if failed:
                file.note("assumed", failed, place)
            elif problem:
                file.note(
                    "assumed",
                    "an evaluation that comes later was not followed to its end: " + problem,
                    line,
                )
            elif self.forwards > before:
                file.note(
                    "assumed",
                    "the evaluation that comes later was followed after the traced steps",
                    line,
                )
