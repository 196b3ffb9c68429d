# SPDX-License-Identifier: Apache-2.0
"""What is known of objects, by which object it is."""

import weakref


class ByIdentity:
    """A dictionary that keeps none of its keys alive. Every operator asks several of them."""

    # `ended` is given what was known of a key that is gone.
    def __init__(self, ended=None):
        self.kept, self.ended = {}, ended

    def __contains__(self, key):
        return id(key) in self.kept

    def __getitem__(self, key):
        return self.kept[id(key)][1]

    def get(self, key, otherwise=None):
        found = self.kept.get(id(key))
        return otherwise if found is None else found[1]

    def __setitem__(self, key, value):
        kept, ended, number = self.kept, self.ended, id(key)

        def gone(_):
            entry = kept.pop(number, None)
            if ended is not None and entry is not None:
                ended(entry[1])

        kept[number] = weakref.ref(key, gone), value

    def __delitem__(self, key):
        del self.kept[id(key)]

    def items(self):
        for reference, value in list(self.kept.values()):
            key = reference()
            if key is not None:
                yield key, value
