# SPDX-License-Identifier: Apache-2.0
# Stands before the scripts that `mem record` and `fit` put on their child's path: calls `imported` with a module once it has
# been imported for the first time.
def _cufit_on_import(wanted, imported):
    import importlib.abc
    import importlib.util
    import sys

    class Loader(importlib.abc.Loader):
        def __init__(self, real):
            self.real = real

        def create_module(self, spec):
            return self.real.create_module(spec)

        def exec_module(self, module):
            module.__loader__ = self.real
            module.__spec__.loader = self.real
            self.real.exec_module(module)
            imported(module)

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name != wanted:
                return None
            sys.meta_path.remove(self)
            spec = importlib.util.find_spec(name)
            if spec is not None and spec.loader is not None:
                spec.loader = Loader(spec.loader)
            return spec

    sys.meta_path.insert(0, Finder())


