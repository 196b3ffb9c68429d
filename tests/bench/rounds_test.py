#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The course of `cufit bench` with workloads that nap, over a stub of torch: rounds_test.py CUFIT."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest

CUFIT = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))


class RoundsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        for name in ("one", "two", "three"):
            path = os.path.join(cls.scratch.name, name)
            subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", path], check=True)
            lib = os.path.join(path, "lib")
            site = os.path.join(lib, os.listdir(lib)[0], "site-packages", "torch")
            shutil.copytree(os.path.join(HERE, "stub", "torch"), site)

    # `work`: the text of a workload file.
    def bench(self, names, work, *words, **variables):
        with open(os.path.join(self.scratch.name, "work.py"), "w") as file:
            file.write(work)
        words = [*words, *(word for name in names for word in ("--env", name))]
        done = subprocess.run(
            [CUFIT, "bench", "--device", "cpu", "--json", "--workload", "work.py", *words],
            capture_output=True, text=True, cwd=self.scratch.name, timeout=300,
            env={"PATH": os.environ["PATH"], "LANG": "C", "HOME": self.scratch.name, **variables},
        )  # fmt: skip
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return json.loads(done.stdout)["cases"][0]

    # The first call after a pause is slow, as where another process has used the device meanwhile.
    # Of three sides the middle one always comes after another one; the others after themselves, too.
    def test_a_side_does_not_pay_for_the_one_before_it(self):
        case = self.bench(
            ("one", "two", "three"),
            "import time\n"
            "last = [0]\n"
            "def step():\n"
            "    if time.perf_counter() - last[0] > 0.008: time.sleep(0.2)\n"
            "    time.sleep(0.002)\n"
            "    last[0] = time.perf_counter()\n"
            "def make(batch, precision): return step, 1\n",
            "--rounds", "12", "--time", "2",
        )  # fmt: skip
        for run in case["runs"]:
            self.assertLess(statistics.median(run["block_seconds"]), 0.19)

    # Three sides are compared three times: twelve rounds would tell nothing.
    def test_many_sides_get_the_rounds_that_they_need(self):
        case = self.bench(
            ("one", "two", "three"),
            "import sys, time\n"
            "nap = 0.004 if sys.prefix.endswith('one') else 0.002\n"
            "def make(batch, precision): return lambda: time.sleep(nap), 1\n",
            "--rounds", "12", "--time", "2",
        )  # fmt: skip
        self.assertEqual([len(run["block_seconds"]) for run in case["runs"]], [14] * 3)
        self.assertEqual(len(case["comparisons"]), 3)
        self.assertNotIn(0, case["fastest"])

    # One that has no room for a single sample does not keep the others at their default.
    def test_the_largest_batch_is_that_of_those_that_run_at_all(self):
        case = self.bench(
            ("one", "two", "three"),
            "import sys, time\n"
            "most = {'one': 0, 'two': 40, 'three': 300}[sys.prefix.rsplit('/', 1)[1]]\n"
            "def make(batch, precision):\n"
            "    def step():\n"
            "        if batch > most: raise MemoryError()\n"
            "        time.sleep(0.001)\n"
            "    return step, batch\n",
            "--rounds", "12", "--time", "1", "--batch", "auto",
        )  # fmt: skip
        kinds = [run["trouble"] and run["trouble"]["kind"] for run in case["runs"]]
        self.assertEqual(kinds, ["oom", None, None])
        self.assertEqual(len(case["comparisons"]), 1)
        self.assertEqual(case["batch"], 32)

    # Before 1.12 a switch of its own forbids TF32.
    def test_an_older_torch_runs_a_workload(self):
        case = self.bench(
            ("one",),
            "import time, torch\n"
            "def make(batch, precision):\n"
            "    assert torch.backends.cuda.matmul.allow_tf32 is False\n"
            "    return lambda: time.sleep(0.002), 1\n",
            "--rounds", "12", "--time", "1", STUB_TORCH="1.11",
        )  # fmt: skip
        self.assertIsNone(case["runs"][0]["trouble"])

    # A block that is meant to be longer than --timeout is no process that hangs.
    def test_a_long_block_does_not_hang(self):
        case = self.bench(
            ("one",),
            "import time\ndef make(batch, precision): return lambda: time.sleep(0.02), 1\n",
            "--rounds", "12", "--time", "15", "--timeout", "1",
        )  # fmt: skip
        self.assertIsNone(case["runs"][0]["trouble"])
        self.assertGreater(statistics.median(case["runs"][0]["block_seconds"]), 1.1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
