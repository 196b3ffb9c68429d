# SPDX-License-Identifier: Apache-2.0
"""What each batch of a validation leaves in memory."""

from ..event_file import VALIDATION


class Growth:
    # What each batch leaves in memory (collected predictions) is there as often by the end of a
    # whole validation, of which the answer reckons the batches that are not traced
    # (src/fit/workspaces/workspaces.cc). A tensor with which each batch is joined anew is beside
    # the last one each time: from the second traced batch on it is left to the answer, too.
    def tell_growth(self, loader, seen):
        tracer, count = self.tracer, len(seen.at)
        samples, batch = (
            getattr(loader, "_cufit_samples", None),
            getattr(loader, "_cufit_batch", None),
        )
        if count < 2 or not samples or not batch:
            return
        starts = [entry[1] for entry in seen.at]
        if count == 2:
            seen.first = tracer.there(starts[0], starts[1])
            return
        if count > 3:
            return self.join_last()
        source = tracer.source()

        def tell(op, *numbers):
            tracer.file.call(
                tracer.file.site(op, "", source, VALIDATION),
                [samples, min(samples, batch), *numbers],
            )

        first, second = tracer.there(starts[0], starts[1]), tracer.there(starts[1], starts[2])
        for size in first.values():
            alike = next((number for number, other in second.items() if other == size), None)
            if alike is not None:
                tell("kept_of_each_batch", second.pop(alike))
                self.told = True
                self.kept.add(alike)
        gone = [size for number, size in seen.first.items() if number not in first]
        grown = {
            number: size - max(old for old in gone if old < size)
            for number, size in second.items()
            if number in self.joins and any(old < size <= 4 * old for old in gone)
        }
        if grown and seen.at[2][0] - seen.at[1][0] >= max(grown.values()) // 2:
            number = max(grown, key=grown.get)
            tell("joined_batches", grown[number], 0)
            self.told = True
            tracer.drop(number)
            self.joined = (
                starts[2],
                second[number],
                lambda: tell("joined_batches", grown[number], 1),
            )

    def join_last(self):
        if self.joined:
            start, least, tell = self.joined
            self.joined = None
            third = self.tracer.there(start, self.tracer.file.storages)
            number = max(third, key=third.get, default=None)
            if number is not None and third[number] > least:
                self.tracer.drop(number)
            tell()

    # Where the program trains on, what the batches left may be gone; else it is beside the steps.
    def tell_gone(self):
        tracer = self.tracer
        if self.told and not any(tracer.there(number, number + 1) for number in self.kept):
            tracer.file.call(
                tracer.file.site("collected_gone", "", tracer.source(), VALIDATION), []
            )
            self.told = False
            self.kept.clear()
