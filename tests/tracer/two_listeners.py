# SPDX-License-Identifier: Apache-2.0
"""While one operator is learnt from, another thread is told that it cannot learn, and what it
tells the event file is not taken for the operator's."""

import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

from cufit_tracer.ops.listener import TAKE, Listener  # noqa: E402


class File:
    def __init__(self):
        self.sizes = []

    def alloc(self, size, site):
        self.sizes.append(size)
        return len(self.sizes) - 1

    def free(self, number):
        pass

    call = category = note = fact = convolution = mark = lambda self, *args: None


def other():
    refused.append(Listener.of(file) is None)
    file.alloc(7, 0)
    file.call(0, [1])
    file.note("assumed", "", "")


file, refused = File(), []
with Listener.of(file) as listener:
    file.alloc(5, 3)
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    refused.append(Listener.of(file) is None)
assert refused == [True, True], "one at a time"
assert listener.said == [(TAKE, 5, 3, 0)] and not listener.more, listener.said
assert file.sizes == [5, 7] and "alloc" not in vars(file)
with Listener.of(file) as again:
    file.note("assumed", "", "")
assert again.more
