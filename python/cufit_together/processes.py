# SPDX-License-Identifier: Apache-2.0
"""The processes: forked, listened to, and ended together."""

import ctypes
import json
import os
import re
import select
import signal
import stat
import sys
import time

KEEP = 256 << 10  # of what a process prints
GRACE = 3  # s that a killed process may take to be gone
AFTERWARDS = 2  # s for the others to say why, once one has failed


def first_line(text):
    lines = str(text).strip().splitlines()
    return lines[0].strip()[:400] if lines else ""


class Process:
    """One that was forked: what it says (JSON lines) and what it prints."""

    def __init__(self, name, work):
        self.name, self.said, self.printed = name, {"step": "start"}, b""
        self.pairs, self.status, self.part = [], None, b""
        words, out = os.pipe(), os.pipe()
        parent = os.getpid()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                become(parent, out[1])
                work(lambda **said: tell(words[1], said))
            except BaseException as error:
                text = first_line(error)
                name = type(error).__name__
                why = name + (": " + text if text else "")
                tell(words[1], {"failed": why, "at": time.monotonic()})
            finally:
                os._exit(0)
        os.close(words[1])
        os.close(out[1])
        self.open = {words[0]: self.take_words, out[0]: self.take_print}

    def take_words(self, data):
        *lines, self.part = (self.part + data).split(b"\n")
        for line in lines:
            said = json.loads(line.decode())
            if "pair" in said:
                self.pairs.append(said.pop("pair"))
            self.said.update(said)

    def take_print(self, data):
        self.printed = (self.printed + data)[-KEEP:]

    def read(self, descriptor):
        data = os.read(descriptor, 65536)
        if data:
            self.open[descriptor](data)
        else:
            os.close(descriptor)
            del self.open[descriptor]

    def reap(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if pid else None
        return self.status is not None

    def why_failed(self):
        """Empty: it did not."""
        if "failed" in self.said:
            why = self.said["failed"]
        elif "done" in self.said or self.status is None or self.open:
            return ""
        elif os.WIFSIGNALED(self.status):
            why = "ended by signal %d" % os.WTERMSIG(self.status)
        else:
            why = "ended with status %d" % os.WEXITSTATUS(self.status)
        return "%s, %s: %s" % (self.name, self.said["step"], why)

    def failed_at(self):
        """Orders those that failed: what a signal ended is the cause of what the others say."""
        return self.said.get("at", 0.0)

    def last_warning(self):
        lines = self.printed.decode(errors="replace").splitlines()
        found = [line.split("NCCL WARN", 1)[1] for line in lines if "NCCL WARN" in line]
        return "NCCL WARN " + first_line(found[-1]) if found else ""


def become(parent, out):
    prctl = ctypes.CDLL(None).prctl
    prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.dup2(out, 1)
    os.dup2(out, 2)


def tell(descriptor, said):
    try:
        os.write(descriptor, json.dumps(said).encode() + b"\n")
    except OSError:
        pass


def shared_files(pid):
    """The files of NCCL and torch in /dev/shm that a process has mapped or open."""
    found = set()
    try:
        with open("/proc/%d/maps" % pid, errors="replace") as maps:
            found.update(line.split(None, 5)[5].strip() for line in maps if "/dev/shm/" in line)
        folder = "/proc/%d/fd" % pid
        for name in os.listdir(folder):
            found.add(os.readlink(os.path.join(folder, name)))
    except OSError:
        pass
    return {one for one in found if re.match(r"/dev/shm/(nccl-|torch_)[^/ ]+$", one)}


class Group:
    """Processes that end together."""

    def __init__(self, works):
        self.shared, self.left, self.all = set(), [], []
        try:
            for name, work in works:
                self.all.append(Process(name, work))
        except BaseException:
            self.end()
            raise

    def wait(self, deadline):
        """Until all are done, one has failed, or the time is over: then "hung"."""
        failed_at = None
        while True:
            now = time.monotonic()
            if failed_at is not None and now > failed_at + AFTERWARDS:
                return "failed"
            if now > deadline:
                return "hung" if failed_at is None else "failed"
            self.take(0.2)
            for one in self.all:
                self.shared |= shared_files(one.pid) if not one.reap() else set()
            if all("done" in one.said for one in self.all):
                return "ok"
            if failed_at is None and any(one.why_failed() for one in self.all):
                failed_at = time.monotonic()

    def take(self, seconds):
        owners = {descriptor: one for one in self.all for descriptor in one.open}
        if not owners:
            return time.sleep(seconds)
        poll = select.poll()
        for descriptor in owners:
            poll.register(descriptor, select.POLLIN)
        for descriptor, _ in poll.poll(int(seconds * 1000)):
            owners[descriptor].read(descriptor)

    def end(self):
        for one in self.all:
            if not one.reap():
                self.shared |= shared_files(one.pid)
        for one in self.all:
            if not one.reap():
                os.kill(one.pid, signal.SIGKILL)
        end = time.monotonic() + GRACE
        while not all([one.reap() for one in self.all]) and time.monotonic() < end:
            time.sleep(0.01)
        self.left = [one.pid for one in self.all if not one.reap()]
        if not self.left:
            remove_shared(self.shared)


def remove_shared(paths):
    for path in paths:
        try:
            found = os.lstat(path)
            if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
                os.unlink(path)
        except OSError:
            pass
