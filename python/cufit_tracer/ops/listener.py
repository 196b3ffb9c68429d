# SPDX-License-Identifier: Apache-2.0
"""What an operator takes, while known_operators.py learns from it."""

import threading

# Steps of what is done again.
RESULT, TAKE, FREE, CALL, PRODUCT = range(5)


class Listener:
    """What an operator tells the event file while it is learnt from: one at a time, in whichever
    thread that is, and without what other threads tell meanwhile."""

    one = threading.Lock()

    # None where one is learnt from already.
    @classmethod
    def of(cls, file):
        return cls(file) if cls.one.acquire(blocking=False) else None

    def __init__(self, file):
        self.file, self.said, self.more = file, [], False
        self.thread = threading.get_ident()
        self.own = {"alloc": self.alloc, "free": self.free, "call": self.call}
        for name in ("category", "note", "fact", "convolution", "mark"):
            self.own[name] = self.other(name)

    def __enter__(self):
        for name, function in self.own.items():
            setattr(self.file, name, function)
        return self

    def __exit__(self, *error):
        for name in self.own:
            delattr(self.file, name)
        self.one.release()

    def is_of_another(self):
        return threading.get_ident() != self.thread

    def alloc(self, size, site):
        number = type(self.file).alloc(self.file, size, site)
        if not self.is_of_another():
            self.said.append((TAKE, size, site, number))
        return number

    # Of other storages autograd's threads may tell at any time.
    def free(self, number):
        if any(step[0] == TAKE and step[3] == number for step in self.said):
            self.said.append((FREE, number))
        type(self.file).free(self.file, number)

    def call(self, site, numbers):
        if not self.is_of_another():
            self.said.append((CALL, site, list(numbers)))
        type(self.file).call(self.file, site, numbers)

    def other(self, name):
        def tell(*args):
            self.more = self.more or not self.is_of_another()
            return getattr(type(self.file), name)(self.file, *args)

        return tell
