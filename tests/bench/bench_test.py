#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cufit bench` over real torch on the CPU: two environments with one torch are told equal, one that
sleeps is told slower, and what fails is named while the others go on.

bench_test.py CUFIT BUILD: ends with 77 where BUILD/torch (tools/fetch-torch) is not there."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

CUFIT, BUILD = (os.path.abspath(path) for path in sys.argv[1:3])
TORCH = os.path.join(BUILD, "torch")

# Work of a fixed length in the environment's own process; `slow` adds a tenth.
WORKLOAD = """
import sys, time
def make(batch, precision):
    import torch
    assert torch.ones(batch).sum() == batch
    seconds = 0.002 * (1.1 if sys.prefix.endswith("slow") else 1)
    return lambda: time.sleep(seconds), batch, "naps"
"""

FAILS = """
import os, signal, sys, time
def make(batch, precision, device=None):
    name = os.path.basename(sys.prefix)
    def step():
        if name == "dies": os.kill(os.getpid(), signal.SIGSEGV)
        if name == "hangs": time.sleep(600)
        if name == "raises": raise ValueError("no \\x1b[31m luck")
        if name == "full": raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        if name == "prints": print("Epoch 1: loss 0.1"); os.write(1, b"garbage\\n" * 1000)
        time.sleep(0.001)
    return step, 1
"""


class BenchTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = self.scratch.name

    # An environment of its own that sees the packages of BUILD/torch.
    def environment(self, name, torch=True):
        path = os.path.join(self.folder, name)
        subprocess.run(
            [os.path.join(TORCH, "bin", "python"), "-m", "venv", "--without-pip", path], check=True
        )
        lib = os.path.join(path, "lib")
        site = os.path.join(lib, os.listdir(lib)[0], "site-packages")
        other = os.path.join(TORCH, "lib", os.listdir(lib)[0], "site-packages")
        if torch:
            with open(os.path.join(site, "torch.pth"), "w") as file:
                file.write(other + "\n")
        return path

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def run_cufit(self, *words):
        environment = {"PATH": os.environ["PATH"], "LANG": "C", "HOME": self.folder}
        done = subprocess.run(
            [CUFIT, *words], capture_output=True, text=True, env=environment, cwd=self.folder, timeout=900
        )
        return done.returncode, done.stdout, done.stderr

    def bench(self, *words):
        code, out, err = self.run_cufit("bench", "--device", "cpu", "--json", *words)
        self.assertIn(code, (0, 1), err)
        return code, json.loads(out)

    def test_one_torch_twice_is_no_difference(self):
        same = self.environment("same")
        work = self.file("naps.py", WORKLOAD)
        # One time in 25 an interval of 95 % leaves the truth out; three times in a row it does not.
        for _ in range(3):
            code, told = self.bench("--env", same, "--env", same, "--workload", work, "--time", "8")
            self.assertEqual(code, 0)
            case = told["cases"][0]
            if case["comparisons"][0]["difference"] == "none":
                break
        self.assertEqual(case["comparisons"][0]["difference"], "none")
        self.assertEqual(len(case["fastest"]), 2)
        self.assertEqual([e["name"] for e in told["environments"]], [same, same + " (2)"])
        self.assertEqual([len(run["block_seconds"]) for run in case["runs"]], [24, 24])
        self.assertEqual(case["unit"], "naps")

    def test_what_sleeps_longer_is_slower(self):
        slow, fast = self.environment("slow"), self.environment("fast")
        work = self.file("naps.py", WORKLOAD)
        measured = os.path.join(self.folder, "measured.json")
        code, told = self.bench(
            "--env", slow, "--env", fast, "--workload", work, "--time", "8", "-o", measured
        )
        self.assertEqual(code, 0)
        two = told["cases"][0]["comparisons"][0]
        self.assertEqual(two["difference"], "faster")
        self.assertLess(two["ratio"]["low"], 1.1)
        self.assertGreater(two["ratio"]["low"], 1.02)
        self.assertEqual(told["cases"][0]["fastest"], [1])
        with open(measured) as file:
            self.assertEqual(json.load(file), told)

    def test_what_fails_is_named_and_the_others_go_on(self):
        names = ("good", "dies", "hangs", "raises", "full", "prints", "empty")
        environments = [self.environment(name, name != "empty") for name in names]
        words = [word for path in environments for word in ("--env", path)]
        work = self.file("fails.py", FAILS)
        code, told = self.bench(
            *words, "--workload", work, "--rounds", "12", "--time", "2", "--timeout", "150"
        )
        self.assertEqual(code, 1)
        kinds = dict(zip(names, (e["trouble"] and e["trouble"]["kind"] for e in told["environments"])))
        self.assertEqual(kinds.pop("empty"), "no_torch")
        self.assertEqual(set(kinds.values()), {None})
        runs = {names[run["environment"]]: run for run in told["cases"][0]["runs"]}
        kinds = {name: run["trouble"] and run["trouble"]["kind"] for name, run in runs.items()}
        self.assertEqual(
            kinds,
            {"good": None, "dies": "died", "hangs": "hung", "raises": "failed", "full": "oom", "prints": None},
        )
        self.assertIn("signal 11", runs["dies"]["trouble"]["why"])
        self.assertNotIn("\x1b", runs["raises"]["trouble"]["why"])
        self.assertEqual(len(told["cases"][0]["comparisons"]), 1)  # good and prints

    def test_a_file_that_breaks_the_contract_is_named(self):
        env = self.environment("env")
        for text, why in (
            ("1/0", "ZeroDivisionError"),
            ("x = 1", "make(batch, precision)"),
            ("def make(batch, precision): return 3", "(callable, items per call)"),
            ("def make(batch, precision): return print, 0", "above 0"),
        ):
            code, told = self.bench("--env", env, "--workload", self.file("bad.py", text), "--time", "1")
            self.assertEqual(code, 1)
            trouble = told["cases"][0]["runs"][0]["trouble"]
            self.assertEqual(trouble["kind"], "workload")
            self.assertIn(why, trouble["why"])

    def test_auto_finds_the_largest_batch_that_all_run(self):
        work = self.file(
            "grows.py",
            "import sys, time\n"
            "def make(batch, precision):\n"
            "    def step():\n"
            "        if batch > (40 if sys.prefix.endswith('small') else 300): raise MemoryError()\n"
            "        time.sleep(0.001)\n"
            "    return step, batch\n",
        )
        small, large = self.environment("small"), self.environment("large")
        code, told = self.bench(
            "--env", large, "--env", small, "--workload", work, "--batch", "auto", "--time", "1"
        )
        self.assertEqual(code, 0)
        self.assertEqual(told["cases"][0]["batch"], 32)

    def test_precisions_of_one_environment_are_compared(self):
        env = self.environment("env")
        code, told = self.bench(
            "--env", env, "--workload", "matmul", "--workload", "copy", "--precision", "fp32",
            "--precision", "bf16", "--precision", "fp16", "--rounds", "12", "--time", "2",
        )  # fmt: skip
        self.assertEqual(code, 1)  # no fp16 on the CPU
        matmul, copy = told["cases"]
        self.assertEqual([run["precision"] for run in matmul["runs"]], ["fp32", "bf16", "fp16"])
        self.assertEqual(matmul["runs"][2]["trouble"]["kind"], "precision")
        self.assertEqual(len(matmul["comparisons"]), 1)
        self.assertEqual((matmul["unit"], copy["unit"]), ("TFLOP", "GB"))
        self.assertEqual([run["precision"] for run in copy["runs"]], [None])
        self.assertGreater(copy["runs"][0]["rate"]["median"], 0)

    def test_a_page_and_a_text_say_the_same(self):
        env = self.environment("env")
        page = os.path.join(self.folder, "page.html")
        work = self.file("naps.py", WORKLOAD)
        code, out, _ = self.run_cufit(
            "bench", "--device", "cpu", "--env", env, "--workload", work, "--time", "1", "--html", page
        )
        self.assertEqual(code, 0)
        self.assertIn("naps/s", out)
        self.assertIn("cufit resolve torch", out)
        with open(page) as file:
            text = file.read()
        self.assertIn("naps/s", text)
        self.assertNotIn("<script", text)


if __name__ == "__main__":
    if not os.path.exists(os.path.join(TORCH, "bin", "python")):
        print("skipped: there is no PyTorch; tools/fetch-torch %s" % TORCH)
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
