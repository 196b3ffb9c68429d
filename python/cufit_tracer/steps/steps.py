# SPDX-License-Identifier: Apache-2.0
"""Where training steps begin and end."""

import contextlib
import os
import sys

from ..event_file import ENDED, FAILED, FORWARD, SEEN, SETUP, STEP_BEGINS, STEP_ENDS
from .evaluation_lines import BlockEnds


class Steps:
    def step_begins(self):
        if self.began is None:
            self.began = self.operators
        if self.phase == SETUP:
            self.file.mark(STEP_BEGINS)
            self.phase = FORWARD

    # What steps in parts steps once; where it only makes its states, not at all.
    @contextlib.contextmanager
    def one_step(self, counts=True):
        before, phase, self.parts = self.parts, self.phase, []
        try:
            yield
        finally:
            parts, self.parts = self.parts, before
            if not counts:
                self.phase = phase
            elif parts:
                self.optimizer_steps(parts[0])

    # A training step is over when each optimizer that takes part has stepped; with several (a GAN),
    # which take part shows when one steps for the second time, or some more times where another is
    # there that has not stepped yet.
    def optimizer_steps(self, number):
        self.by_hand = None
        if self.after.running:
            raise BlockEnds("it trains")
        if self.parts is not None:
            self.parts.append(number)
            return
        if self.by_function:
            return
        if self.optimizers == 1:
            self.step_ends()
            return
        if self.round is None and number not in self.first_round:
            self.first_round.append(number)
            return
        if self.round is None:
            self.again += 1
            if (
                self.one_never_stepped()
                and self.again < self.MOST_AGAIN
                and self.operators < (self.began or 0) + self.OPERATORS_AGAIN
            ):
                return
            self.round = set(self.first_round)
            if len(self.round) > 1:
                self.stepped.add(number)
            return self.step_ends()
        self.stepped.add(number)
        if self.stepped >= self.round:
            self.stepped.clear()
            self.step_ends()

    # A program may step itself (fastai does): that is over where the next forward begins.
    def written(self, tensor):
        strided = isinstance(tensor, self.FakeTensor) and tensor.layout is self.torch.strided
        if strided and self.storages.get(tensor.untyped_storage()) in self.weights:
            self.by_hand = True

    # Whether what runs now is no training: no gradients are wanted, or the models that could train
    # do not.
    def evaluates(self):
        models = [
            module
            for module in list(self.outermost) + list(self.told)
            if any(p.requires_grad for p in module.parameters())
        ]
        return (
            not self.torch.is_grad_enabled()
            or bool(models)
            and not any(module.training for module in models)
        )

    # One that only hands on to another (SAM) has the other's parameters.
    def one_never_stepped(self):
        def of(optimizer):
            return {id(p) for group in optimizer.param_groups for p in group["params"]}

        made = list(self.made)
        stepped = set().union(
            *(of(optimizer) for optimizer in made if id(optimizer) in self.first_round)
        )
        return any(
            id(optimizer) not in self.first_round and not of(optimizer) <= stepped
            for optimizer in made
        )

    def step_ends(self):
        self.file.mark(STEP_ENDS)
        self.compared.clear()
        self.steps += 1
        if self.steps == 1:
            self.tell_training_loader()
        self.keep_shapes()
        self.keep_acts()
        if self.steps == self.wanted["STEPS"] and (self.goes_on() or self.warms_up()):
            self.wanted["STEPS"] += 1
        more = self.variant is not None and self.variant.step_ends()
        if self.steps >= self.wanted["STEPS"] and not more:
            # zero_grad may stand behind the step; the steps before have shown it.
            if not self.after.begin():
                self.finish(SEEN)
            return
        self.file.mark(STEP_BEGINS)
        self.phase = FORWARD

    # Before a CUDA graph is captured, steps run on another stream (PyTorch's notes on CUDA graphs
    # ask for that): the one that is captured takes memory of its own.
    def warms_up(self):
        cuda = self.torch.cuda
        aside = cuda.current_stream() is not cuda.default_stream()
        return aside and not self.captured and self.steps < self.wanted["MOST_STEPS"]

    # A program that fails where it would have been stopped long ago has come to its end.
    def ending(self):
        if self.after.began:
            return SEEN
        more = self.variant is not None and self.variant.accumulating
        return (
            ENDED if self.until is not None and self.steps >= self.enough and not more else FAILED
        )

    def finish(self, reason):
        if reason == ENDED and self.steps >= self.wanted["STEPS"]:
            reason = SEEN
        self.after.left = True  # what follows is none of the program's doing
        self.file.end(reason)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0 if reason == SEEN else 1)
