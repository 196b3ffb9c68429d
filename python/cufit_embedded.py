# SPDX-License-Identifier: Apache-2.0
"""Stands in each embedded file behind the sources of its modules (tools/embed_python.cmake) and
imports them as if they lay in a folder beside that file. Nothing is unpacked but Python's own byte
code. Python 3.6 and later."""

import importlib
import importlib.machinery
import os
import sys


class Loader(importlib.machinery.SourceFileLoader):
    """Of a module whose source is in memory. Tracebacks find its lines through get_source."""

    def __init__(self, name, path, source, changed):
        super().__init__(name, path)
        self.source, self.changed = source, changed

    def get_data(self, path):
        return self.source if path == self.path else super().get_data(path)

    def path_stats(self, path):
        return {"mtime": self.changed, "size": len(self.source)}


class Finder:
    def __init__(self, file, sources):
        self.folder = os.path.dirname(os.path.abspath(file))
        self.changed = int(os.stat(file).st_mtime)
        self.sources = sources

    def find_spec(self, name, path=None, target=None):
        module = name.replace(".", "/")
        for file in (module + ".py", module + "/__init__.py"):
            if file in self.sources:
                place = os.path.join(self.folder, *file.split("/"))
                loader = Loader(name, place, self.sources[file].encode(), self.changed)
                spec = importlib.machinery.ModuleSpec(name, loader, origin=place)
                spec.has_location = True
                if file.endswith("/__init__.py"):
                    spec.submodule_search_locations = [os.path.dirname(place)]
                return spec
        return None


# `entry`: a module whose function `entry` imports what it needs and returns what is to be done.
def run(file, sources, entry, as_program):
    finder = Finder(file, sources)
    sys.meta_path.insert(0, finder)
    try:
        begin = importlib.import_module(entry).entry(as_program)
    finally:
        sys.meta_path.remove(finder)
    begin()
