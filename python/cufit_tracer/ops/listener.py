# SPDX-License-Identifier: Apache-2.0
"""What an operator takes, while known_operators.py learns from it."""

# Steps of what is done again.
RESULT, TAKE, FREE, CALL, PRODUCT = range(5)


class Listener:
    """What an operator tells the event file while it is learnt from. One that runs within another
    (torch.compile asks what it makes) is heard by both."""

    def __init__(self, file):
        self.file, self.said, self.more = file, [], False
        self.own = {"alloc": self.alloc, "free": self.free, "call": self.call}
        for name in ("category", "note", "fact", "convolution", "mark"):
            self.own[name] = self.other(name)

    def __enter__(self):
        self.before = {name: getattr(self.file, name) for name in self.own}
        self.outer = {name: self.file.__dict__.get(name) for name in self.own}
        for name, function in self.own.items():
            setattr(self.file, name, function)
        return self

    def __exit__(self, *error):
        for name, function in self.outer.items():
            if function is None:
                delattr(self.file, name)
            else:
                setattr(self.file, name, function)

    def alloc(self, size, site):
        number = self.before["alloc"](size, site)
        self.said.append((TAKE, size, site, number))
        return number

    # Of other storages autograd's threads may tell at any time.
    def free(self, number):
        if any(step[0] == TAKE and step[3] == number for step in self.said):
            self.said.append((FREE, number))
        self.before["free"](number)

    def call(self, site, numbers):
        self.said.append((CALL, site, list(numbers)))
        self.before["call"](site, numbers)

    def other(self, name):
        def tell(*args):
            self.more = True
            return self.before[name](*args)

        return tell
