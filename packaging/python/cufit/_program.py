# SPDX-License-Identifier: Apache-2.0
"""Where the program is: installers put it where they put scripts."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig


class Error(RuntimeError):
    """cufit gave no answer. `exit_code` is 2 for wrong arguments, 3 for what it needs and cannot read."""

    def __init__(self, message: str, exit_code: int):
        super().__init__(message)
        self.exit_code = exit_code


def _installed_beside():
    """What the installer noted of this very package: another version may be in other places."""
    from importlib import metadata

    here = os.path.dirname(os.path.abspath(__file__))
    try:
        installed = metadata.distribution("cufit")
        files = installed.files or []
    except metadata.PackageNotFoundError:
        return
    if not any(os.path.dirname(os.path.abspath(str(installed.locate_file(one)))) == here for one in files):
        return  # the note is of another copy than the one that was imported
    for one in files:
        if one.name == "cufit" and one.parent.name == "bin":
            yield os.path.dirname(str(installed.locate_file(one)))


def _places():
    yield from _installed_beside()
    yield sysconfig.get_path("scripts")
    if sys.executable:
        yield os.path.dirname(sys.executable)
    try:  # pip install --user
        yield sysconfig.get_path("scripts", scheme=f"{os.name}_user")
    except KeyError:
        pass
    # pip install --target, --prefix and the environments that uvx makes
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    yield os.path.join(package, "bin")
    yield os.path.join(package, os.pardir, os.pardir, os.pardir, "bin")


def program() -> str:
    """The path of the program. CUFIT_PROGRAM names another one."""
    named = os.environ.get("CUFIT_PROGRAM")
    if named:
        if not os.access(named, os.X_OK):
            raise Error(f"CUFIT_PROGRAM names {named}, which cannot be run", 3)
        return named
    for place in _places():
        if not place:
            continue
        path = os.path.normpath(os.path.join(place, "cufit"))
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    found = shutil.which("cufit")
    if found:
        return found
    raise Error("the program `cufit` is not beside this package: install the wheel again", 3)
