# SPDX-License-Identifier: Apache-2.0
"""Effects behind the traced steps: files go to the scratch folder, anything else ends the trace."""

import errno
import io
import os
import shutil
import sys
import tempfile
import threading

from .evaluation_lines import BlockEnds


class FilesApart:
    WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    CHANGES = frozenset(
        (
            "os.mkdir",
            "os.rename",
            "os.remove",
            "os.rmdir",
            "os.link",
            "os.symlink",
            "os.truncate",
            "os.chmod",
            "os.chown",
            "os.utime",
            "os.system",
            "os.exec",
            "os.fork",
            "os.forkpty",
            "os.posix_spawn",
            "os.spawn",
            "os.kill",
            "pty.spawn",
            "shutil.copyfile",
            "shutil.copytree",
            "shutil.move",
            "shutil.rmtree",
            "subprocess.Popen",
            "sqlite3.connect",
            "socket.connect",
            "socket.bind",
            "socket.sendto",
            "socket.sendmsg",
            "webbrowser.open",
        )
    )

    # Libraries that open files without Python.
    WRITERS = (
        ("cv2", "imwrite"),
        ("cv2", "VideoWriter"),
        ("h5py", "File"),
        ("soundfile", "write"),
        ("torchaudio", "save"),
        ("pyarrow.parquet", "write_table"),
        ("torchvision.io", "write_png"),
        ("torchvision.io", "write_jpeg"),
    )

    def happens(self, event, args):
        if (
            self.left
            or threading.current_thread() is not threading.main_thread()
            or self.tracer.compiling
        ):
            return
        if (
            event == "os.mkdir"
            and len(args) > 1
            and args[1] == 0o700
            and within(os.path.abspath(os.fsdecode(args[0])), tempfile.gettempdir())
        ):
            return  # tempfile.mkdtemp
        if event == "open" and self.makes_temporary(*args):
            self.temporary.add(os.path.abspath(os.fsdecode(args[0])))
        if event in self.CHANGES and not self.moving or event == "open" and self.writes(*args):
            if self.running:
                raise BlockEnds("it would change something outside (%s)" % event)
            self.leave()

    def writes(self, path, mode, flags):
        if not (isinstance(flags, int) and flags & self.WRITES) or not isinstance(
            path, (str, bytes)
        ):
            return False
        path = os.path.abspath(os.fsdecode(path))
        return not (
            os.sep + "__pycache__" + os.sep in path
            or path == os.devnull
            or within(path, self.tracer.wanted["SCRATCH"])
            or flags & os.O_EXCL
            and within(path, tempfile.gettempdir())
        )

    # As tempfile does.
    def makes_temporary(self, path, mode, flags):
        return (
            isinstance(flags, int)
            and flags & self.WRITES
            and flags & os.O_EXCL
            and isinstance(path, (str, bytes))
            and within(os.path.abspath(os.fsdecode(path)), tempfile.gettempdir())
        )

    # A file that was made behind the steps gets another name, as who saves does in the end: it goes
    # to the scratch folder, where it is found by that name.
    def keep_renamed_apart(self, scratch, moved):
        def renaming(function):
            def rename(src, dst, *args, **kwargs):
                if not isinstance(src, (str, bytes, os.PathLike)) or args or kwargs:
                    return function(src, dst, *args, **kwargs)
                path = os.path.abspath(os.fsdecode(src))
                if path in self.temporary and path not in moved:
                    self.moving = True
                    try:
                        apart = os.path.join(scratch, "moved-%d" % len(moved))
                        shutil.copyfile(path, apart)
                        os.remove(path)
                    finally:
                        self.moving = False
                    moved[path] = apart
                if path not in moved:
                    return function(src, dst)
                moved[os.path.abspath(os.fsdecode(dst))] = moved.pop(path)
                return dst if function is move else None

            return rename

        # Of one that lies there nothing else is to be done, either.
        def leaving(function, forget):
            def change(path, *args, **kwargs):
                known = isinstance(path, (str, bytes, os.PathLike))
                path_there = os.path.abspath(os.fsdecode(path)) if known else None
                if path_there not in moved:
                    return function(path, *args, **kwargs)
                if forget:
                    del moved[path_there]

            return change

        os.chmod, os.utime = leaving(os.chmod, False), leaving(os.utime, False)
        os.remove, os.unlink = leaving(os.remove, True), leaving(os.unlink, True)
        move = shutil.move
        os.rename, os.replace, shutil.move = (
            renaming(function) for function in (os.rename, os.replace, move)
        )

    # What is opened to be written is made in the scratch folder, and found there again; folders are
    # not made, and are empty.
    def keep_files_apart(self):
        scratch = self.tracer.wanted["SCRATCH"]
        if not scratch:
            return
        import builtins

        real_open, real_mkdir, real_makedirs, real_listdir = (
            builtins.open,
            os.mkdir,
            os.makedirs,
            os.listdir,
        )
        moved, folders = {}, set()

        def elsewhere(path):  # than where torch.compile keeps its own
            return (
                not self.tracer.compiling
                and isinstance(path, (str, bytes, os.PathLike))
                and not within(os.path.abspath(os.fsdecode(path)), scratch)
            )

        def opened(file, mode="r", *args, **kwargs):
            if elsewhere(file) and isinstance(mode, str):
                path = os.path.abspath(os.fsdecode(file))
                if path in moved:
                    file = moved[path]
                elif mode[:1] in "wax" and path != os.devnull:
                    moved[path] = file = os.path.join(scratch, "written-%d" % len(moved))
            return real_open(file, mode, *args, **kwargs)

        # What is there is not made, which would count as a change.
        def there(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path))

        def mkdir(path, mode=0o777, *args, **kwargs):
            if not args and not kwargs and os.path.exists(path):
                there(path)
            apart = elsewhere(path) and not within(
                os.path.abspath(os.fsdecode(path)), tempfile.gettempdir()
            )
            if not apart or os.path.exists(path):
                return real_mkdir(path, mode, *args, **kwargs)
            folders.add(os.path.abspath(os.fsdecode(path)))

        def makedirs(name, mode=0o777, exist_ok=False):
            if os.path.exists(name):
                return None if exist_ok and os.path.isdir(name) else there(name)
            if not elsewhere(name):
                return real_makedirs(name, mode, exist_ok)
            folders.add(os.path.abspath(os.fsdecode(name)))

        def listdir(path="."):
            if (
                isinstance(path, (str, bytes, os.PathLike))
                and os.path.abspath(os.fsdecode(path)) in folders
                and not os.path.exists(path)
            ):
                return []
            return real_listdir(path)

        self.keep_renamed_apart(scratch, moved)
        builtins.open = io.open = opened
        os.mkdir, os.makedirs, os.listdir = mkdir, makedirs, listdir
        for module, name in self.WRITERS:
            if hasattr(sys.modules.get(module), name):
                setattr(sys.modules[module], name, lambda *args, **kwargs: self.leave())


def within(path, folder):
    return bool(folder) and path.startswith(os.path.abspath(folder) + os.sep)
