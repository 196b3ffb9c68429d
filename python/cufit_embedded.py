# SPDX-License-Identifier: Apache-2.0
"""Stands in each embedded file behind the sources of its modules (tools/embed_python.cmake) and
imports them as if they lay in a folder beside that file. Nothing is unpacked; what was compiled is
kept in one file of that folder, for the Pythons that the program starts. Python 3.6 and later."""

import importlib
import importlib.machinery
import marshal
import os
import sys


class Loader:
    """Of a module whose source is in memory. Tracebacks find its lines through get_source."""

    def __init__(self, modules, file):
        self.modules, self.file = modules, file

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(self.modules.code(self.file), module.__dict__)

    def get_source(self, name):
        return self.modules.sources[self.file]

    def is_package(self, name):
        return self.file.endswith("/__init__.py")


class Modules:
    """Finds and compiles them."""

    def __init__(self, file, sources, name):
        self.sources = sources
        self.folder = os.path.dirname(os.path.abspath(file))
        tag = "%s.%s-%d.code" % (name, sys.implementation.cache_tag, sys.flags.optimize)
        self.kept = os.path.join(self.folder, "__pycache__", tag)
        # That of another Python or of another text is not used.
        self.key = sys.version, int(os.stat(file).st_mtime), sum(map(len, sources.values()))
        self.codes, self.changed = self.read(), False

    def find_spec(self, name, path=None, target=None):
        module = name.replace(".", "/")
        for file in (module + ".py", module + "/__init__.py"):
            if file in self.sources:
                place = self.place(file)
                spec = importlib.machinery.ModuleSpec(name, Loader(self, file), origin=place)
                spec.has_location = True
                if file.endswith("/__init__.py"):
                    spec.submodule_search_locations = [os.path.dirname(place)]
                return spec
        return None

    def place(self, file):
        return os.path.join(self.folder, *file.split("/"))

    def code(self, file):
        if file not in self.codes:
            self.codes[file] = compile(
                self.sources[file], self.place(file), "exec", dont_inherit=True
            )
            self.changed = True
        return self.codes[file]

    def read(self):
        try:
            with open(self.kept, "rb") as file:
                key, codes = marshal.loads(file.read())
            return codes if key == self.key else {}
        except (OSError, ValueError, TypeError, EOFError):
            return {}

    def keep(self):
        if not self.changed or sys.dont_write_bytecode:
            return
        part = "%s.%d" % (self.kept, os.getpid())
        try:
            os.makedirs(os.path.dirname(self.kept), exist_ok=True)
            with open(part, "wb") as file:
                file.write(marshal.dumps((self.key, self.codes)))
            os.replace(part, self.kept)
        except OSError:
            pass


# `package`.main has a function `entry`, which imports what it needs and returns what is to be done.
def run(file, sources, package, as_program):
    modules = Modules(file, sources, package)
    sys.meta_path.insert(0, modules)
    try:
        begin = importlib.import_module(package + ".main").entry(as_program)
    finally:
        sys.meta_path.remove(modules)
    modules.keep()
    begin()
