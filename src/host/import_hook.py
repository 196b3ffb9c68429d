# SPDX-License-Identifier: Apache-2.0
# Stands before the scripts that `mem record` and `fit` put on their child's path: calls `imported` with a module once it has
# been imported for the first time.
def _cufit_on_import(wanted, imported):
    import importlib.abc
    import sys

    class Loader(importlib.abc.Loader):
        def __init__(self, real):
            self.real = real

        def __getattr__(self, name):
            return getattr(self.real, name)

        def create_module(self, spec):
            return self.real.create_module(spec)

        def exec_module(self, module):
            module.__loader__ = self.real
            module.__spec__.loader = self.real
            self.real.exec_module(module)
            if finder in sys.meta_path:
                sys.meta_path.remove(finder)
                imported(module)

    # Asked, too, by a program that only looks whether the module is there (importlib.util.find_spec): stays until it is imported.
    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name != wanted:
                return None
            for other in list(sys.meta_path):
                spec = other.find_spec(name, path, target) if other is not self and hasattr(other, "find_spec") else None
                if spec is not None:
                    if spec.loader is not None:
                        spec.loader = Loader(spec.loader)
                    return spec
            return None

    finder = Finder()
    sys.meta_path.insert(0, finder)


