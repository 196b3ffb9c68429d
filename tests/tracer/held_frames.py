# SPDX-License-Identifier: Apache-2.0
"""Who looks where the program is keeps nothing of it alive: while the file's name is looked at,
the program goes on and returns from the function that it was in."""

import os
import sys
import threading
import weakref

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

from cufit_tracer import watch  # noqa: E402

inside, asked, returned = threading.Event(), threading.Event(), threading.Event()


class Tensor:
    pass


def users_file(name):
    asked.set()
    assert returned.wait(60)
    return ""


def step():
    tensor = Tensor()
    seen.append(weakref.ref(tensor))
    inside.set()
    assert asked.wait(60)


seen, settings = [], {"DEADLINE": None, "IDLE": None, "PROGRESS": None}
watch.users_file = users_file
looks = watch.Watch(settings, [])


def look():
    inside.wait()
    looks.place()


thread = threading.Thread(target=look)
thread.start()
step()
alive = seen[0]() is not None
returned.set()
thread.join()
assert not alive, "the tensor of a function that has returned"
