#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `cufit exporter` and other exporters cost beside each other, and what a driver that hangs
does to their pages.

    python3 tests/gpu/compare_exporter.py [CUFIT] [--seconds 120] [--interval 15]
    python3 tests/gpu/compare_exporter.py [CUFIT] --standin build/standin --hang

CUFIT is left out where it has no exporter yet. nvitop-exporter is taken from PATH or from --nvitop;
one more: --other 'NAME=COMMAND {port}'. All run in the same minutes; memory is of all processes of
an exporter at the end, processor time of the time between the first and the last scrape.

--standin DIR: the stand-in driver there, 8 H200s with 8 processes each; else this machine's driver.
--hang [FILE]: the machine in FILE (else that of --standin) has a driver that does not answer for 60
s in the middle. Its temperatures are changed when it falls silent and when it answers again, so a
page says how old it is: `fresh`, `frozen` (a value of before) or `gone` (no temperature). FILE has
a line `live = 1` and is put back at the end. nvitop-exporter needs nvmlInitWithFlags of a stand-in.
The stand-in looks for Xids every 5 ms where NVML sleeps: processor time of who watches for them.

Exit code 1: nothing could be measured.
"""

import argparse
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

TICK = os.sysconf("SC_CLK_TCK")
PROMETHEUS_TIMEOUT = 10  # seconds: its default scrape_timeout, after which it drops the scrape


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def stat_fields(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


def family(root):
    """The process and all below it."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(name)] = int(stat_fields(name)[1])
        except OSError:
            continue
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def processor_seconds(root):
    """Own time and that of children that ended and were waited for."""
    total = 0
    for pid in family(root):
        try:
            total += sum(int(field) for field in stat_fields(pid)[11:15])
        except OSError:
            continue
    return total / TICK


def memory_mib(root, key):
    total = 0
    for pid in family(root):
        try:
            with open(f"/proc/{pid}/smaps_rollup") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith(key + ":"))
        except OSError:
            continue
    return total / 1024


class Exporter:
    def __init__(self, name, command, port, folder):
        self.name, self.url = name, f"http://127.0.0.1:{port}/metrics"
        self.log = os.path.join(folder, name + ".log")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        self.scrapes = []  # (when it was asked, seconds, page or None)
        self.before = 0.0

    def page(self, timeout=5.0):
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        asked = {"X-Prometheus-Scrape-Timeout-Seconds": str(PROMETHEUS_TIMEOUT)}
        with direct.open(
            urllib.request.Request(self.url, headers=asked), timeout=timeout
        ) as answer:
            return answer.read().decode()

    def ready(self, until):
        while time.monotonic() < until and self.process.poll() is None:
            try:
                if "temperature" in self.page():
                    return True
            except OSError:
                pass
            time.sleep(0.2)
        return False

    def scrape_until(self, end, interval):
        self.before = processor_seconds(self.process.pid)
        turn = time.monotonic()
        while turn < end:
            time.sleep(max(0.0, turn - time.monotonic()))
            start = time.monotonic()
            try:
                page = self.page(timeout=120)
            except OSError:
                page = None
            self.scrapes.append((start, time.monotonic() - start, page))
            turn = max(turn + interval, time.monotonic())

    def stop(self):
        pids = family(self.process.pid)
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            print(f"{self.name}: did not end on SIGTERM within 10 s")
            self.process.kill()
            self.process.wait()
        time.sleep(0.2)
        for pid in pids[1:]:
            if os.path.exists(f"/proc/{pid}"):
                print(f"{self.name}: process {pid} is left behind")
                os.kill(pid, signal.SIGKILL)


class Machine:
    """The file of a described machine, whose driver can be told to hang."""

    def __init__(self, path, call):
        self.path, self.call = path, call
        with open(path) as file:
            self.text = file.read()
        if not re.search(r"(?m)^live = 1", self.text):
            sys.exit(f"{path}: has no line `live = 1`, so nobody reads it again")

    def write(self, degrees, hangs):
        """Another file under the name: nobody reads half of one."""
        text = re.sub(r"(?m)^temperature = .*$", f"temperature = {degrees}", self.text)
        if hangs:
            text = f"hang = {self.call}\n" + text
        with open(self.path + ".new", "w") as file:
            file.write(text)
        os.replace(self.path + ".new", self.path)

    def restore(self):
        with open(self.path + ".new", "w") as file:
            file.write(self.text)
        os.replace(self.path + ".new", self.path)


def describe(path, sleepers, live):
    """8 H200s with 8 processes each."""
    lines = ["driver = 580.95.05", "cuda = 13000", f"live = {int(live)}"]
    for gpu in range(8):
        lines += [
            "[gpu]", "name = NVIDIA H200", f"uuid = GPU-00000000-1111-2222-3333-44444444444{gpu}",
            f"pci = 0000:6{gpu}:00.0", "cc = 9.0", "memory = 150754820096", "used = 90000000000",
            "temperature = 61", "slowdown_temperature = 95", "power_mw = 412000",
            "power_limit_mw = 700000", "energy_mj = 123456789", "utilization = 97",
            "utilization.memory = 41", "clock.sm = 1755", "clock.memory = 3201",
            "clock_max.sm = 1980", "clock_max.memory = 3201", "pcie_gen = 5", "pcie_width = 16",
            "throttle = 4", "ecc.current = 1", "corrected.volatile = 0", "uncorrected.volatile = 0",
            "remapped.corrected = 0", "persistence = 1",
        ]  # fmt: skip
        for one in sleepers[8 * gpu : 8 * gpu + 8]:
            lines += ["[process]", f"pid = {one.pid}", "used = 11000000000", "sm = 12"]
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")


def state(page, degrees):
    """Of a page, where the machine has these degrees now: fresh, frozen or gone."""
    name = r"(?mi)^(?!\w*slowdown)\w*temperature_(?:gpu|c|celsius)(?:\{.*\})? (\S+)$"
    said = re.findall(name, page)
    if not said:
        return "gone"
    return "fresh" if any(float(value) == degrees for value in said) else "frozen"


def admits(page):
    """Does the page itself say that its figures are old or missing?"""
    return re.search(r"(?m)^\w*(driver_stalled 1|last_collect_success 0)$", page) is not None


def told(exporter, seconds):
    times = [took for _, took, page in exporter.scrapes if page is not None]
    if not times:
        print(f"{exporter.name:22}no scrape was answered")
        return
    root = exporter.process.pid
    spent = processor_seconds(root) - exporter.before
    last = next(page for _, _, page in reversed(exporter.scrapes) if page is not None)
    series = sum(1 for line in last.splitlines() if line and not line.startswith("#"))
    print(
        f"{exporter.name:22}RSS {memory_mib(root, 'Rss'):7.1f} MiB  PSS "
        f"{memory_mib(root, 'Pss'):7.1f} MiB  CPU {spent:6.2f} s = {100 * spent / seconds:5.2f} %"
        f"  {len(family(root))} processes  {series} series, {len(last) // 1024} KiB"
    )
    print(
        f"{'':22}scrapes {len(exporter.scrapes)}: median {1000 * statistics.median(times):.1f} ms,"
        f" worst {1000 * max(times):.1f} ms, not answered {len(exporter.scrapes) - len(times)},"
        f" over {PROMETHEUS_TIMEOUT} s {sum(t > PROMETHEUS_TIMEOUT for t in times)}"
    )


def told_of_hang(exporter, start, end):
    """The machine has 61 degrees before the hang, 62 in it and 63 afterwards."""
    during = [(a, t, p) for a, t, p in exporter.scrapes if a < end and a + t > start]
    pages = [p for a, t, p in during if p is not None and a + t < end]
    states = [state(page, 62) for page in pages]
    answered = ", ".join(f"{states.count(one)} {one}" for one in dict.fromkeys(states))
    waited = [t for _, t, _ in during]
    back = [
        a + t - end for a, t, p in exporter.scrapes if p and a + t > end and state(p, 63) == "fresh"
    ]
    print(
        f"{exporter.name:22}hang of {end - start:.0f} s: worst scrape {max(waited, default=0):.1f}"
        f" s; pages meanwhile: {answered or 'none'}, of which {sum(map(admits, pages))} say so;"
        f" fresh again {f'{min(back):.1f} s after it' if back else 'never in this run'}"
    )


def commands(arguments):
    nvitop = arguments.nvitop or shutil.which("nvitop-exporter")
    if arguments.cufit:
        port = free_port()
        address = f"127.0.0.1:{port}"
        yield "cufit exporter", port, [arguments.cufit, "exporter", "--listen", address]
    if nvitop:
        port = free_port()
        yield "nvitop-exporter", port, [nvitop, "--bind-address", "127.0.0.1", "--port", str(port)]
    for text in arguments.other:
        name, _, command = text.partition("=")
        port = free_port()
        yield name, port, command.replace("{port}", str(port)).split()


def run(arguments, machine, folder):
    exporters = [Exporter(name, c, port, folder) for name, port, c in commands(arguments)]
    try:
        until = time.monotonic() + 30
        running = [one for one in exporters if one.ready(until)]
        for one in exporters:
            if one not in running:
                with open(one.log) as file:
                    print(f"{one.name}: no page; its last words:\n{file.read()[-600:]}")
        start = time.monotonic()
        end = start + arguments.seconds
        threads = [
            threading.Thread(target=one.scrape_until, args=(end, arguments.interval))
            for one in running
        ]
        for thread in threads:
            thread.start()
        if machine:
            time.sleep(max(0.0, (arguments.seconds - arguments.stall) / 2))
            machine.write(62, hangs=True)
            silent = time.monotonic()
            time.sleep(arguments.stall)
            machine.write(63, hangs=False)
            speaks = time.monotonic()
        for thread in threads:
            thread.join()
        time.sleep(max(0.0, end - time.monotonic()))
        for one in running:
            told(one, time.monotonic() - start)
        if machine:
            for one in running:
                told_of_hang(one, silent, speaks)
        return bool(running)
    finally:
        if machine:
            machine.restore()
        for one in exporters:
            one.stop()


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cufit", nargs="?")
    parser.add_argument("--nvitop", help="nvitop-exporter")
    parser.add_argument("--other", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--interval", type=float)
    parser.add_argument("--standin", metavar="DIR")
    parser.add_argument("--hang", nargs="?", const="", metavar="FILE")
    parser.add_argument("--stall", type=float, default=60, help="seconds of the hang")
    parser.add_argument("--call", default="nvmlDeviceGetUtilizationRates", help="what hangs")
    arguments = parser.parse_args()
    hangs = arguments.hang is not None
    arguments.seconds = arguments.seconds or (arguments.stall + 60 if hangs else 120)
    arguments.interval = arguments.interval or (5 if hangs else 15)
    if hangs and not arguments.hang and not arguments.standin:
        parser.error("--hang without FILE needs --standin DIR")
    return arguments


def main():
    arguments = parsed()
    sleepers = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = arguments.hang or os.path.join(folder, "machine")
            if arguments.standin:
                os.environ["LD_LIBRARY_PATH"] = os.path.abspath(arguments.standin)
                if not arguments.hang:
                    sleepers = [subprocess.Popen(["sleep", "100000"]) for _ in range(64)]
                    describe(path, sleepers, arguments.hang is not None)
            if arguments.standin or arguments.hang:
                os.environ["CUFIT_STANDIN"] = os.path.abspath(path)
            machine = None if arguments.hang is None else Machine(path, arguments.call)
            return 0 if run(arguments, machine, folder) else 1
        finally:
            for one in sleepers:
                one.kill()
                one.wait()


if __name__ == "__main__":
    sys.exit(main())
