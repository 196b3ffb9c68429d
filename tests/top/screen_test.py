# SPDX-License-Identifier: Apache-2.0
"""`cufit top` on a terminal, driven by tmux: screen_test.py CUFIT BUILD. Ends with 77 where there is no tmux."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

CUFIT, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
GPU = """[gpu]
name = NVIDIA H200
uuid = GPU-00000000-1111-2222-3333-44444444444{0}
pci = 0000:6{0}:00.0
memory = 150754820096
used = 96600000000
utilization = 97
clock.sm = 1755
pcie_gen = 5
pcie_width = 16
temperature = 61
"""
PROCESS = "[process]\npid = {}\nused = {}\nsm = {}\n"


class Screen(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.machine = os.path.join(self.folder, "machine")
        self.sleepers = [
            subprocess.Popen(["/opt/%s" % name, "300"], executable=shutil.which("sleep"))
            for name in ("first", "second")
        ]
        for one in self.sleepers:
            self.addCleanup(one.wait)
            self.addCleanup(one.kill)
        self.socket = os.path.join(self.folder, "tmux")
        self.addCleanup(
            subprocess.run, ["tmux", "-S", self.socket, "kill-server"], capture_output=True
        )
        self.describe()

    def describe(self, head="", gpus=2):
        text = "live = 1\ndriver = 580.95.05\ncuda = 13000\n" + head
        for number in range(gpus):
            text += GPU.format(number)
            if number == 0:
                text += PROCESS.format(self.sleepers[0].pid, 5 << 30, 7)
                text += PROCESS.format(self.sleepers[1].pid, 3 << 30, 90)
        with open(self.machine + ".new", "w") as file:
            file.write(text)
        os.rename(self.machine + ".new", self.machine)

    def tmux(self, *words):
        done = subprocess.run(["tmux", "-S", self.socket, *words], capture_output=True, text=True)
        return done.stdout

    def start(self, *options, columns=80, rows=24, lang="C.UTF-8"):
        variables = {
            "CUFIT_STANDIN": self.machine,
            "LD_LIBRARY_PATH": os.path.join(BUILD, "standin"),
            "LC_ALL": "C.UTF-8",
            "CUFIT_LANG": lang,
        }
        words = ["env"] + ["%s=%s" % one for one in variables.items()]
        words += [CUFIT, "top", "--interval", "0.2", *options]
        command = (
            "trap : INT; "
            + " ".join("'%s'" % word for word in words)
            + "; echo ended with $?; sleep 60"
        )
        self.tmux(
            "-f",
            "/dev/null",
            "-u",
            "new-session",
            "-d",
            "-x",
            str(columns),
            "-y",
            str(rows),
            command,
        )

    def lines(self):
        return self.tmux("capture-pane", "-p").split("\n")

    def until(self, wanted, what):
        for _ in range(200):
            lines = self.lines()
            if wanted(lines):
                return lines
            time.sleep(0.05)
        self.fail("%s:\n%s" % (what, "\n".join(lines)))

    def shows(self, *texts):
        return self.until(lambda lines: all(text in "\n".join(lines) for text in texts), texts)

    def keys(self, *names):
        self.tmux("send-keys", *names)

    def row_of(self, lines, text):
        return [number for number, line in enumerate(lines) if text in line][0]

    def test_the_picture_and_its_keys(self):
        self.start()
        lines = self.shows("H200", "first 300", "second 300", "1755 MHz", "q quit")
        self.assertTrue(all(len(line) <= 80 for line in lines), lines)
        self.assertLess(self.row_of(lines, "first 300"), self.row_of(lines, "second 300"))
        self.keys("u")
        lines = self.shows("[use]")
        self.assertLess(self.row_of(lines, "second 300"), self.row_of(lines, "first 300"))
        self.keys("/")
        self.keys("first")
        self.keys("Enter")
        self.until(lambda lines: "second 300" not in "\n".join(lines), "filtered")
        self.keys("Escape")
        self.shows("second 300")
        self.keys("?")
        self.shows("Nothing here ends a process")
        self.keys("x")
        self.until(lambda lines: "Nothing here" not in "\n".join(lines), "help is gone")
        self.keys("d")
        self.until(lambda lines: "1755 MHz" not in "\n".join(lines), "no details")
        self.keys("Space")
        self.shows("PAUSED")
        self.describe(gpus=1)
        time.sleep(0.8)
        self.assertIn("\n1   H200", "\n".join(self.lines()))
        self.keys("Space")
        self.until(lambda lines: "\n1   H200" not in "\n".join(lines), "goes on")
        self.keys("q")
        self.shows("ended with 0")

    def test_sizes(self):
        self.start(columns=130, rows=40)
        self.shows("job/container", "memory and use of the last samples")
        self.tmux("resize-window", "-x", "60", "-y", "16")
        lines = self.until(lambda lines: "job/container" not in "\n".join(lines), "narrow")
        self.assertTrue(all(len(line) <= 60 for line in lines), lines)
        self.tmux("resize-window", "-x", "20", "-y", "4")
        time.sleep(0.5)
        self.tmux("resize-window", "-x", "100", "-y", "30")
        self.shows("H200", "first 300", "q quit")

    def test_many_gpus_leave_room_for_processes(self):
        self.describe(gpus=8)
        self.start()
        lines = self.shows("7   H200", "first 300", "second 300")
        self.assertNotIn("1755 MHz", "\n".join(lines))

    def test_chinese(self):
        self.start(lang="zh")
        lines = self.shows("显存", "利用率", "q 退出", "first 300")
        self.keys("?")
        self.shows("这里不会结束任何进程")
        self.assertIn("驱动 580.95.05", lines[0])

    def test_a_driver_that_hangs(self):
        self.start()
        self.shows("first 300")
        self.describe("hang = nvmlDeviceGetPowerUsage\n")
        self.shows("STALE", "nvmlDeviceGetPowerUsage", "first 300")
        self.describe()
        self.until(lambda lines: "STALE" not in "\n".join(lines), "back again")
        self.keys("q")
        self.shows("ended with 0")

    def test_interrupted(self):
        self.start()
        self.shows("first 300")
        self.keys("C-c")
        self.shows("ended with 130")

    def test_many_samples_show_their_progress(self):
        variables = {
            "CUFIT_STANDIN": self.machine,
            "LD_LIBRARY_PATH": os.path.join(BUILD, "standin"),
        }
        master, terminal = os.openpty()
        for samples in ("3", "1"):
            command = [CUFIT, "top", "--json", "--interval", "0.1", "--samples", samples]
            env = {**os.environ, **variables}
            subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=terminal, check=True)
            os.write(terminal, b"end")
            said = b""
            while not said.endswith(b"end"):
                said += os.read(master, 4096)
            if samples == "1":
                self.assertEqual(said, b"end")
            else:
                self.assertTrue(all(b"%d / 3" % i in said for i in (1, 2, 3)), said)
        os.close(master)
        os.close(terminal)

    def test_a_recording(self):
        file = os.path.join(self.folder, "a.jsonl")
        variables = {
            "CUFIT_STANDIN": self.machine,
            "LD_LIBRARY_PATH": os.path.join(BUILD, "standin"),
        }
        record = [CUFIT, "top", "--once", "--interval", "0.1", "--samples", "4", "--record", file]
        subprocess.run(record, env={**os.environ, **variables}, capture_output=True, check=True)
        self.start("--from", file)
        self.shows("4/4", "first", "second")
        self.keys("Left")
        self.shows("3/4")
        self.keys("q")
        self.shows("ended with 0")


if __name__ == "__main__":
    if not shutil.which("tmux"):
        print("skipped: no tmux")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
