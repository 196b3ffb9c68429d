# SPDX-License-Identifier: Apache-2.0
"""What follows the traced steps: validation, and one training step behind it."""

import sys
import weakref

from ..event_file import AFTER_STEPS, FORWARD, OTHER, SEEN, STEP_BEGINS, VALIDATION
from .evaluation_lines import BlockEnds, evaluations_within
from .evaluations import Evaluations
from .files_apart import FilesApart
from .growth import Growth
from .iterators import Iterators, Seen
from .later_batches import LaterBatches


# When enough training steps were seen, the DataLoaders that feed them give no more batches, so that
# the program comes to what it does after an epoch. That is followed for three batches of each
# DataLoader, and to the end of the first training step behind it (its blocks come to lie among what
# validation left; a later epoch may train more), the program's end, an error, or the first thing
# that would change something outside of it: a process, a connection, a file renamed or removed.
# Files that the program makes go to the scratch folder.
class AfterSteps(Iterators, Evaluations, FilesApart, Growth):
    BATCHES = 3
    MORE_STEPS = 3  # over batches that the program had fetched before
    # And three times those of the steps; fewer where no DataLoader tells how long it goes on.
    OPERATORS, OPERATORS_BY_HAND = 200000, 50000

    def __init__(self, tracer):
        self.tracer = tracer
        self.began = False
        # No DataLoader feeds the steps: where the next would begin, the lines that evaluate are
        # run.
        self.by_hand = False
        self.temporary, self.moving = set(), False  # files that were made; one gets another name
        self.left = False  # the trace ends; nothing of that is the program's doing
        # Iterators that gave a batch and have more: the order in which their loaders were made.
        self.live = weakref.WeakKeyDictionary()
        # How many batches each gave while no model trained.
        self.evaluated = weakref.WeakKeyDictionary()
        self.own = weakref.WeakKeyDictionary()  # those made after the steps
        self.ended = weakref.WeakSet()  # those that were given no more
        self.restarted = self.again = False
        # Lines of the loop: how often they were run, are, what they bound.
        self.within, self.running, self.bound = 0, False, []
        self.given = None  # what is known (Seen) of the iterator that gave the last batch
        self.trained = None  # the iterator behind validation
        self.fetch = None  # a batch, as PyTorch does
        self.more = 0
        # Of training: so far, for a step, that may still be given.
        self.batches = self.per_step = self.extra = 0
        self.most = self.until = 0
        self.forwards = 0
        # Growth; the storages of the second batch by which it was seen.
        self.told, self.kept = False, set()
        self.later = LaterBatches(tracer)
        self.joins = set()  # storages that an operator made which joins tensors
        # Of a tensor that grows with each batch: from which storage on, bytes, how to tell of the
        # last.
        self.joined = None

    def next(self, iterator, real_next):
        if self.began:
            seen = self.seen_of(iterator)
            if self.extra and (seen is None or seen.trains):
                return self.next_of_training(iterator, seen, real_next)
            if seen is None and self.restarted and iterator in self.ended:
                seen = self.own[iterator] = Seen(self.forwards)  # one for all epochs: the next
            if seen is None or seen.over or seen.trains:
                self.ended.add(iterator)
                raise StopIteration
            self.count(iterator, seen)
        try:
            batch = real_next(iterator)
        except BaseException:
            self.live.pop(iterator, None)
            raise
        self.batches += not self.began
        if not self.began and self.tracer.steps == 0 and self.tracer.evaluates():
            self.evaluated[iterator] = self.evaluated.get(iterator, 0) + 1
        loader = iterator._cufit_loader() if hasattr(iterator, "_cufit_loader") else None
        self.live[iterator] = getattr(loader, "_cufit_order", 0)
        self.later.safely(self.later.saw, iterator, batch)
        return batch

    def seen_of(self, iterator):
        seen = self.own.get(iterator)
        if seen is None and iterator not in self.live and iterator not in self.ended:
            self.begins(iterator)  # made before the steps, not used for them
            seen = self.own[iterator]
        if seen is None and not self.extra:
            # The program evaluates between two steps by itself, or by lines that come later.
            between = self.restarted and self.tracer.phase == VALIDATION and iterator in self.live
            if between or self.evaluate_within(iterator):
                self.extra = self.per_step
        return seen

    def next_of_training(self, iterator, seen, real_next):
        self.extra -= 1
        kept = self.later.left(iterator)
        batch = real_next(iterator) if kept is None else kept
        if seen is not None:
            self.later.safely(self.later.saw, iterator, batch)
        return batch

    def count(self, iterator, seen):
        self.given = seen
        loader = iterator._cufit_loader()
        # Some loaders fetch a batch before the last one is used.
        if seen.at and seen.forwards == self.forwards:
            seen.at.pop()
            seen.ahead = True
        seen.forwards = self.forwards
        seen.at.append((self.tracer.allocated, self.tracer.file.storages))
        self.tell_growth(loader, seen)
        seen.over = len(seen.at) > self.BATCHES - seen.ahead
        if seen.over:
            raise StopIteration

    # Some evaluate before the first step (the sanity check of Lightning), and do not come to the
    # end. Where another fed the step, theirs is not that of the steps.
    def forget_evaluated(self):
        evaluated = [iterator for iterator in self.evaluated if iterator in self.live]
        if len(evaluated) < len(self.live):
            for iterator in evaluated:
                self.live.pop(iterator)
                self.batches -= self.evaluated[iterator]
        self.evaluated.clear()

    # The loader of the steps: of those whose batches are on the way, the one made first.
    def training_loader(self):
        live = sorted(self.live.items(), key=lambda entry: entry[1])
        return next(
            (
                iterator._cufit_loader()
                for iterator, _ in live
                if hasattr(iterator, "_cufit_loader")
            ),
            None,
        )

    # At the end of the last step that was wanted. False: there is nothing to follow.
    def begin(self):
        tracer = self.tracer
        if self.began:
            if self.again or self.restarted or self.more >= self.MORE_STEPS:
                self.later.safely(self.later.tell_next, self.trained, self.fetch)
                self.left = True
                return False
            self.rest()
            return True
        if tracer.by_function or tracer.variant is not None or not self.live and self.batches:
            return False
        self.by_hand = not self.live
        self.per_step = max(1, -(-self.batches // max(tracer.steps, 1)))
        self.rest()
        self.later.safely(self.later.tell, list(self.live), self.per_step, self.fetch)
        self.began = True
        self.until = 4 * tracer.operators - 3 * tracer.began
        self.until += self.OPERATORS_BY_HAND if self.by_hand else self.OPERATORS
        self.most = tracer.file.storages + max(20000, 20 * tracer.file.storages)
        evaluate_soon()
        self.keep_files_apart()
        sys.addaudithook(self.happens)
        return True

    def rest(self):
        self.tracer.file.mark(AFTER_STEPS)
        self.tracer.phase = OTHER

    # Before a module's forward that no other calls.
    def forward(self, module, trains):
        tracer = self.tracer
        self.forwards += 1
        if tracer.capturing:
            return
        starts = trains and tracer.phase in (OTHER, VALIDATION)  # not a module of a step under way
        late = tracer.operators > self.until or tracer.file.storages > self.most
        if late and not self.again and not (starts and self.restarted):
            said = (
                "what follows the traced steps was not seen to its end; what it takes later is not "
            )
            tracer.file.note("assumed", said + "in the answer", tracer.source())
        if self.running and starts:
            raise BlockEnds("it trains")
        if starts and self.by_hand:
            self.run_lines(evaluations_within(sys._getframe(1), behind=True), False)
            self.leave()
        if late or starts and self.again:
            self.leave()
        if not trains and tracer.phase == OTHER:
            tracer.phase = VALIDATION
        if starts:
            if self.restarted:
                self.join_last()
                if not self.again:  # what comes every so many epochs
                    given = self.given
                    self.run_lines(
                        evaluations_within(sys._getframe(1), behind=True, counted=True), False
                    )
                    self.join_last()
                    self.given, tracer.phase = given, OTHER
                self.again, self.restarted = True, False
                self.extra = max(self.BATCHES, self.per_step)
                if self.given is not None:
                    self.given.trains = True
                    self.trained = next(
                        (iterator for iterator, seen in self.own.items() if seen is self.given),
                        None,
                    )
            self.more += 1
            self.tell_gone()
            tracer.file.mark(STEP_BEGINS)
            tracer.phase = FORWARD

    def leave(self):
        if not self.left:
            self.left = True
            self.join_last()
            self.tracer.finish(SEEN)


# The Trainer and Lightning count steps or batches until they evaluate; here they do so at once.
def evaluate_soon():
    trainer = sys.modules.get("transformers.trainer_callback")
    if trainer is not None:
        real = trainer.DefaultFlowCallback.on_step_end

        def on_step_end(self, args, state, control, **kwargs):
            control = real(self, args, state, control, **kwargs)
            if str(getattr(getattr(args, "eval_strategy", None), "value", "")) == "steps":
                control.should_evaluate = True
            return control

        trainer.DefaultFlowCallback.on_step_end = on_step_end
    for package in ("lightning.pytorch", "pytorch_lightning"):
        loop = sys.modules.get(package + ".loops.training_epoch_loop")
        if hasattr(loop, "_TrainingEpochLoop"):
            loop._TrainingEpochLoop._should_check_val_fx = lambda self, *args: bool(
                self.trainer.enable_validation
            )


def patch_after_steps(tracer):
    loader = tracer.torch.utils.data.dataloader._BaseDataLoaderIter
    real_init, real_next = loader.__init__, loader.__next__

    def init(self, of):
        real_init(self, of)
        tracer.after.made(self, of)

    tracer.after.fetch = real_next
    loader.__init__ = init
    loader.__next__ = lambda self: tracer.after.next(self, real_next)
