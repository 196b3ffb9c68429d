# SPDX-License-Identifier: Apache-2.0
"""Calls a function with a module once that has been imported for the first time."""

import importlib.abc
import sys


class Loader(importlib.abc.Loader):
    def __init__(self, real, finder):
        self.real, self.finder = real, finder

    def __getattr__(self, name):
        return getattr(self.real, name)

    def create_module(self, spec):
        return self.real.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = self.real
        module.__spec__.loader = self.real
        self.real.exec_module(module)
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)
            self.finder.imported(module)


class Finder(importlib.abc.MetaPathFinder):
    """Asked, too, by a program that only looks whether the module is there
    (importlib.util.find_spec): stays until it is imported."""

    def __init__(self, wanted, imported):
        self.wanted, self.imported = wanted, imported

    def find_spec(self, name, path=None, target=None):
        if name != self.wanted:
            return None
        for other in list(sys.meta_path):
            spec = None
            if other is not self and hasattr(other, "find_spec"):
                spec = other.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = Loader(spec.loader, self)
                return spec
        return None


def on_import(wanted, imported):
    sys.meta_path.insert(0, Finder(wanted, imported))


# The same of one that may be there already.
def when_imported(wanted, imported):
    if wanted in sys.modules:
        imported(sys.modules[wanted])
    else:
        on_import(wanted, imported)
